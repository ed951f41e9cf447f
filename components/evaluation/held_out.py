"""The held-out windows, and which document, domain and chunk each of their tokens belongs to.

Shape suffixes used in this file:
    B batch   T position   C chunk of a batch   N span of the held-out splits   K known concept
    M place for a concept
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.tokens import TokenStream
from model.diffusion import Batch

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """Some windows of the held-out text, with the origins of their tokens."""

    batch: Batch
    document_BT: Integers
    """Number of the document, −1 on padding."""

    chunk_row_C: Integers
    """Row among the held-out chunks, of each local chunk of the batch."""

    bytes_BT: Floats
    """Share of its chunk's bytes that each token stands for; zero for BOS and padding."""


class HeldOut:
    """The held-out splits of a token stream, numbered by document and by chunk."""

    def __init__(self, stream: TokenStream, splits: Sequence[str], length: int) -> None:
        self._stream, self._length = stream, length
        spans = stream.spans
        inside_N = np.isin(np.array(spans.split), list(splits)) & (spans.chunk_id >= 0)
        self.span_rows = np.flatnonzero(inside_N)
        self.documents, number_N = np.unique(
            np.array(spans.doc_id)[self.span_rows], return_inverse=True
        )
        self._document_of_span = _scattered(self.span_rows, number_N, len(spans))
        self._row_of_span = _scattered(self.span_rows, np.arange(len(self.span_rows)), len(spans))
        self.document_of_chunk = number_N
        domains_N = np.array(spans.domain)[self.span_rows]
        self.domains = sorted(set(domains_N.tolist()))
        first_N = np.unique(number_N, return_index=True)[1]
        self.domain_of_document = domains_N[first_N]
        self._n_coded_of_span = _coded(stream)
        self._windows = [
            (split, index) for split in splits for index in range(stream.n_windows(split, length))
        ]
        if not len(self.span_rows):
            raise ValueError(
                f"the splits {', '.join(splits)} hold no text to measure on; pack more documents"
            )

    def windows(self, batch_sequences: int, max_tokens: int) -> Iterator[Window]:
        """Batches of windows, evenly spread over the held-out text when it is more than asked."""
        n_wanted = max(1, min(len(self._windows), max_tokens // self._length))
        places = np.linspace(0, len(self._windows) - 1, n_wanted).round().astype(int)
        chosen = [self._windows[place] for place in dict.fromkeys(places.tolist())]
        for split in dict.fromkeys(split for split, _ in chosen):
            indices = np.array([index for name, index in chosen if name == split])
            for start in range(0, len(indices), batch_sequences):
                yield self._window(split, indices[start : start + batch_sequences])

    def labels(self, n_known: int) -> Tensor:
        """Whether each held-out chunk has each concept, (N, K)."""
        concepts_NM = torch.from_numpy(self._stream.spans.concepts_NM[self.span_rows])
        place_NM = torch.where(concepts_NM < 0, n_known, concepts_NM)
        label_NK = torch.zeros(len(place_NM), n_known + 1, dtype=torch.bool)
        return label_NK.scatter_(1, place_NM, value=1)[:, :n_known]

    def supervised(self) -> Tensor:
        """Chunks that somebody labelled with at least one concept (N)."""
        spans = self._stream.spans
        some_N = (spans.concepts_NM[self.span_rows] >= 0).any(axis=1)
        return torch.from_numpy(spans.labelled[self.span_rows] & some_N)

    def _window(self, split: str, indices: Integers) -> Window:
        # Positions in the stream name the sequences, so that no two splits share their noise.
        names = self._stream.bounds[split][0] + indices * self._length
        batch = self._stream.batch(split, self._length, indices, sample_ids=names)
        origins = self._stream.origins(split, self._length, indices)
        span_BT = origins.span_BT
        real_BT = (span_BT >= 0) & (batch.ids_BT.numpy() != self._stream.specials.bos_id)
        bytes_BT = self._stream.spans.n_bytes[span_BT] / self._n_coded_of_span[span_BT]
        return Window(
            batch=batch,
            document_BT=np.where(span_BT >= 0, self._document_of_span[span_BT], -1),
            chunk_row_C=self._row_of_span[origins.span_C],
            bytes_BT=np.where(real_BT, bytes_BT, 0.0),
        )


def _scattered(rows: Integers, values: Integers, n: int) -> Integers:
    table = np.full(n, -1, dtype=np.int64)
    table[rows] = values
    return table


def _coded(stream: TokenStream) -> Floats:
    """Tokens of each span that carry its bytes: all but the BOS of a document's first span."""
    spans = stream.spans
    documents = np.array(spans.doc_id)
    first = np.append(True, documents[1:] != documents[:-1])
    return np.maximum(1, spans.token_end - spans.token_start - first).astype(np.float64)
