"""The network's mean state of a chunk, read in its place in the stream (paper §6.1.3).

    clean    over the chunk's tokens as they are: what a finished text is asked with
    masked   over masked tokens, each block at a rate drawn from (0, 1): what tokens are committed
             from. One token a step in a random order sees each number of the others equally often,
             and so does this, in one pass

Shape suffixes: B batch   T position   C chunk of a batch   N chunk   D width
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.index.config import BuildConfig
from components.order import Integers, permuted
from components.tokens import TokenStream
from model.diffusion import Batch, corrupt, uniform_between
from model.engine import dtype
from model.language_model import LanguageModel
from model.transducer import mean_states

_LEAST_SHARE = 0.5
"""Of a chunk that a window cuts: so much must be inside for its state to be learned from."""


@dataclass(frozen=True)
class ChunkStates:
    """Mean states of whole chunks, one row a chunk."""

    chunk_id_N: Integers
    doc_id_N: NDArray[np.str_]
    """Chunks of one document are not independent."""

    clean_ND: Tensor
    masked_ND: Tensor
    """Of a network that is asked for masked tokens; the AR families read clean text alone."""

    ids: tuple[Integers, ...]
    """Token ids of each chunk."""

    visible_ids: tuple[Integers, ...]
    """Those of them that were not masked."""

    def __len__(self) -> int:
        return len(self.chunk_id_N)


@dataclass(frozen=True)
class Pairs:
    """States to learn from, and the chunk each is of; most chunks have two."""

    chunk_id_N: Integers
    state_ND: Tensor


@dataclass(frozen=True)
class StateReader:
    """Reads windows of the stream in a shuffled order."""

    lm: LanguageModel
    stream: TokenStream
    config: BuildConfig

    def windows(self, split: str) -> Integers:
        """Windows of a split, shuffled."""
        n = self.stream.n_windows(split, self.config.length)
        return permuted(np.arange(n), n, self.config.seed, epoch=0)

    def whole_chunks(self, split: str, windows: Integers, n: int) -> tuple[ChunkStates, int]:
        """States of `n` chunks that lie whole in these windows; how many windows were read."""
        found: list[ChunkStates] = []
        n_read = 0
        for indices in self._batches(windows):
            if sum(map(len, found)) >= n:
                break
            found.append(self._whole_chunks(split, indices))
            n_read += len(indices)
        if not any(map(len, found)):
            raise ValueError(
                f"no chunk of the {split} split fits whole into a window of {self.config.length} "
                f"tokens ({len(windows)} windows); raise length, or cut shorter chunks"
            )
        return _joined(found, n), n_read

    def pairs(self, windows: Integers, n: int) -> Pairs:
        """At most `n` states of training chunks, clean and masked."""
        found: list[Pairs] = []
        for indices in self._batches(windows):
            if sum(len(pairs.state_ND) for pairs in found) >= n:
                break
            found.append(self._pairs(indices))
        if not found:
            raise ValueError(
                f"the training split has no window of {self.config.length} tokens beside those "
                f"that are held back; ingest more documents, or lower length"
            )
        return Pairs(
            np.concatenate([pairs.chunk_id_N for pairs in found])[:n],
            torch.cat([pairs.state_ND for pairs in found])[:n],
        )

    def _batches(self, windows: Integers) -> Iterator[Integers]:
        for start in range(0, len(windows), self.config.batch_sequences):
            yield windows[start : start + self.config.batch_sequences]

    @torch.no_grad()
    def _whole_chunks(self, split: str, indices: Integers) -> ChunkStates:
        batch = self.stream.batch(split, self.config.length, indices)
        span_C = self.stream.origins(split, self.config.length, indices).span_C
        clean_CD = mean_states(self._hidden(batch.ids_BT), batch.chunk_BT, len(span_C))
        masked_CD, asked_BT = self._masked(batch, len(span_C))
        kept_C = self.share(split, batch, indices, span_C) >= 1.0
        if self._is_asked_for_masked:
            kept_C &= np.isin(np.arange(len(span_C)), asked_BT)
        kept = np.flatnonzero(kept_C)
        visible_BT = np.where(asked_BT >= 0, -1, batch.chunk_BT.numpy())
        return ChunkStates(
            self.stream.spans.chunk_id[span_C[kept]],
            np.array([self.stream.spans.doc_id[span] for span in span_C[kept]], dtype=np.str_),
            clean_CD[kept],
            masked_CD[kept],
            _ids_of(kept, batch.chunk_BT.numpy(), batch.ids_BT.numpy()),
            _ids_of(kept, visible_BT, batch.ids_BT.numpy()),
        )

    @torch.no_grad()
    def _pairs(self, indices: Integers) -> Pairs:
        batch = self.stream.batch("train", self.config.length, indices)
        span_C = self.stream.origins("train", self.config.length, indices).span_C
        kept = np.flatnonzero(self.share("train", batch, indices, span_C) >= _LEAST_SHARE)
        clean_CD = mean_states(self._hidden(batch.ids_BT), batch.chunk_BT, len(span_C))
        chunk_id_C = self.stream.spans.chunk_id[span_C]
        if not self._is_asked_for_masked:
            return Pairs(chunk_id_C[kept], clean_CD[kept])
        masked_CD, asked_BT = self._masked(batch, len(span_C))
        asked = kept[np.isin(kept, asked_BT)]
        return Pairs(
            np.concatenate([chunk_id_C[kept], chunk_id_C[asked]]),
            torch.cat([clean_CD[kept], masked_CD[asked]]),
        )

    @property
    def _is_asked_for_masked(self) -> bool:
        return self.lm.config.backbone.attention != "causal"

    def _masked(self, batch: Batch, n_chunks: int) -> tuple[Tensor, NDArray[np.int64]]:
        """States over masked tokens (C, D), and the chunk of each of them (B, T), else −1."""
        if not self._is_asked_for_masked:
            clean_CD = mean_states(self._hidden(batch.ids_BT), batch.chunk_BT, n_chunks)
            return clean_CD, np.full(batch.chunk_BT.shape, -1)
        rates = uniform_between(0.0, 1.0)
        noise = corrupt(batch, rates, self.config.seed, 0, self.lm.config)
        asked_BT = torch.where(noise.masked_BT, batch.chunk_BT, -1)
        return mean_states(self._hidden(noise.noisy_BT), asked_BT, n_chunks), asked_BT.numpy()

    def _hidden(self, ids_BT: Tensor) -> Tensor:
        low_precision = dtype(self.config.dtype) == torch.bfloat16
        with torch.autocast(ids_BT.device.type, torch.bfloat16, enabled=low_precision):
            return self.lm.composed(self.lm.hidden(ids_BT)).float()

    def share(
        self, split: str, batch: Batch, indices: Integers, span_C: Integers
    ) -> NDArray[np.float64]:
        """Share of each chunk's tokens, its special ones included, that the window holds."""
        local, first = np.unique(batch.chunk_BT.numpy(), return_index=True)
        there = local >= 0
        start_C = np.full(len(span_C), np.iinfo(np.int64).max // 2)  # where no token of it is
        windows = indices[first[there] // self.config.length]
        start_C[local[there]] = self.stream.bounds[split][0] + windows * self.config.length
        spans = self.stream.spans
        starts_C, ends_C = spans.token_start[span_C], spans.token_end[span_C]
        inside_C = np.minimum(ends_C, start_C + self.config.length) - np.maximum(starts_C, start_C)
        return np.asarray(inside_C / (ends_C - starts_C))


def _ids_of(
    chunks: Integers, chunk_BT: NDArray[np.int64], ids_BT: NDArray[np.int64]
) -> tuple[Integers, ...]:
    return tuple(ids_BT[chunk_BT == chunk] for chunk in chunks)


def _joined(found: list[ChunkStates], n: int) -> ChunkStates:
    return ChunkStates(
        np.concatenate([states.chunk_id_N for states in found])[:n],
        np.concatenate([states.doc_id_N for states in found])[:n],
        torch.cat([states.clean_ND for states in found])[:n],
        torch.cat([states.masked_ND for states in found])[:n],
        tuple(ids for states in found for ids in states.ids)[:n],
        tuple(ids for states in found for ids in states.visible_ids)[:n],
    )
