"""The packed token stream, read by position: files to batches (paper §5.4, method: dataloader).

    stream.npy    token ids of train, valid and test, one after the other, memory-mapped
    rows          spans (a chunk with the special tokens that belong to it, or padding) that tile it

A window is `length` consecutive tokens of a split, counted from the split's start. The last one is
filled up with padding, so no token is ever left out.

Shape suffixes used in this file:
    B batch   T position   C chunk of a batch   M place for a concept   N rows, anything flat
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from components import contracts
from components.order import Integers, Mixture, endless
from model.diffusion import Batch
from model.tokenizer import SpecialIds, Tokenizer

MAX_CONCEPTS = 16
"""Most concepts a chunk may carry, as in the released training code."""

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Spans:
    """Columns of the span table, row by row; `token_start` rises and spans leave no gap."""

    chunk_id: Integers
    doc_id: list[str]
    split: list[str]
    domain: list[str]
    token_start: Integers
    token_end: Integers
    n_bytes: Integers
    labelled: NDArray[np.bool_]
    concepts_NM: Integers

    def __len__(self) -> int:
        return len(self.chunk_id)


@dataclass(frozen=True)
class Origins:
    """Where the tokens of a batch come from, as rows of the span table; −1 beyond a split's end."""

    span_BT: Integers
    span_C: Integers
    """The span of each local chunk of the batch of the same windows."""


class TokenStream:
    """A verified Tokens artifact."""

    def __init__(self, folder: Path) -> None:
        contracts.verify(folder, contracts.TOKENS)
        facts = contracts.json_file(folder, "tokens.json")
        self.tokenizer_path = folder / "tokenizer.json"
        self.tokenizer = Tokenizer(self.tokenizer_path)
        self.vocab_size = int(str(facts["vocab_size"]))
        self.block = int(str(facts["block"]))
        self.bounds = _bounds(facts["splits"])
        self.spans = _spans(folder / contracts.ROWS_FILE)
        self._stream = np.load(folder / "stream.npy", mmap_mode="r")
        self._mixtures: dict[tuple[int, tuple[tuple[str, float], ...]], Mixture] = {}

    @property
    def specials(self) -> SpecialIds:
        """Ids of the special tokens in this stream."""
        return self.tokenizer.specials

    def n_windows(self, split: str, length: int) -> int:
        """Windows of `length` tokens in a split, the last one possibly short of text."""
        start, end = self.bounds[split]
        return -(-(end - start) // length)

    def n_tokens(self, split: str) -> int:
        """Tokens of a split, padding included."""
        start, end = self.bounds[split]
        return end - start

    def n_bytes(self, split: str) -> dict[str, int]:
        """Bytes of UTF-8 text in a split, by domain."""
        totals: dict[str, int] = {}
        for name, domain, n in zip(
            self.spans.split, self.spans.domain, self.spans.n_bytes.tolist(), strict=True
        ):
            if name == split and domain:
                totals[domain] = totals.get(domain, 0) + n
        return totals

    def span_rows(self, split: str) -> Integers:
        """Rows of the span table that hold a chunk of this split."""
        inside = np.array([name == split for name in self.spans.split])
        return np.flatnonzero(inside & (self.spans.chunk_id >= 0))

    def span_tokens(self, row: int) -> Integers:
        """Token ids of one span, with its special tokens."""
        start, end = int(self.spans.token_start[row]), int(self.spans.token_end[row])
        return np.asarray(self._stream[start:end], dtype=np.int64)

    def origins(self, split: str, length: int, indices: Integers) -> Origins:
        """The spans that the tokens and the local chunks of `batch` come from."""
        positions_BT, inside_BT = self._positions(split, length, indices)
        span_BT = np.where(inside_BT, self._span_at(positions_BT), -1)
        key_BT = self._chunk_keys(self._ids(positions_BT, inside_BT), span_BT)
        keys = np.unique(key_BT[key_BT >= 0])
        return Origins(span_BT, keys % max(1, len(self.spans)))

    def batch(
        self, split: str, length: int, indices: Integers, sample_ids: Integers | None = None
    ) -> Batch:
        """Windows as a batch. Sample ids (the seeds of their noise) are the windows themselves
        unless given."""
        positions_BT, inside_BT = self._positions(split, length, indices)
        ids_BT = self._ids(positions_BT, inside_BT)
        span_BT = np.where(inside_BT, self._span_at(positions_BT), -1)
        key_BT = self._chunk_keys(ids_BT, span_BT)
        keys, local = np.unique(key_BT, return_inverse=True)
        n_unpooled = int(np.searchsorted(keys, 0))  # 1 where some token is in no chunk, else 0
        span_C = keys[n_unpooled:] % max(1, len(self.spans))
        return Batch(
            ids_BT=torch.from_numpy(ids_BT),
            chunk_BT=torch.from_numpy(local.reshape(key_BT.shape) - n_unpooled),
            concepts_CM=torch.from_numpy(self.spans.concepts_NM[span_C]),
            labelled_C=torch.from_numpy(self.spans.labelled[span_C]),
            sample_ids_B=torch.from_numpy(
                np.array(indices if sample_ids is None else sample_ids, dtype=np.int64)
            ),
        )

    def batches(self, split: str, length: int, batch_sequences: int) -> Iterator[Batch]:
        """All windows of a split, in order: what evaluation reads."""
        windows = np.arange(self.n_windows(split, length))
        for start in range(0, len(windows), batch_sequences):
            yield self.batch(split, length, windows[start : start + batch_sequences])

    def train_windows(
        self, places: Integers, length: int, seed: int, domain_weights: Mapping[str, float]
    ) -> Integers:
        """The training windows at these places of the global order; no weights: all windows."""
        if domain_weights:
            return self._mixture(length, domain_weights).windows_at(places, seed)
        return endless(places, self.n_windows("train", length), seed)

    def windows_by_domain(self, length: int) -> dict[str, Integers]:
        """Training windows by the domain that most of their tokens belong to."""
        names = sorted({name for name in self.spans.domain if name})
        code_of = {name: code for code, name in enumerate(names)}
        code_N = np.array([code_of.get(name, -1) for name in self.spans.domain])
        start, end = self.bounds["train"]
        rows = np.flatnonzero((self.spans.token_start < end) & (code_N >= 0))
        votes = np.zeros((self.n_windows("train", length), len(names)), dtype=np.int64)
        for row in rows.tolist():
            first, last = int(self.spans.token_start[row]), int(self.spans.token_end[row])
            for window in range((first - start) // length, (last - 1 - start) // length + 1):
                low = max(first, start + window * length)
                high = min(last, start + (window + 1) * length)
                votes[window, code_N[row]] += high - low
        winner = votes.argmax(axis=1)
        found = {name: np.flatnonzero(winner == code) for code, name in enumerate(names)}
        return {name: windows for name, windows in found.items() if len(windows)}

    def train_batch(
        self, step: int, batch_sequences: int, length: int, seed: int, rank: int = 0,
        world: int = 1, domain_weights: Mapping[str, float] | None = None,
    ) -> Batch:  # fmt: skip
        """This rank's share of the global batch of a step: a function of (seed, step) alone.

        `batch_sequences` counts the sequences of all ranks. Sample ids are places in the global
        order, so the noise of a sequence does not depend on the number of ranks either.
        """
        if batch_sequences % world:
            raise ValueError(
                f"batch_sequences is {batch_sequences}, which {world} ranks cannot share evenly; "
                f"try {-(-batch_sequences // world) * world}"
            )
        places = step * batch_sequences + np.arange(rank, batch_sequences, world)
        windows = self.train_windows(places, length, seed, domain_weights or {})
        return self.batch("train", length, windows, sample_ids=places)

    def _positions(
        self, split: str, length: int, indices: Integers
    ) -> tuple[Integers, NDArray[np.bool_]]:
        start, end = self.bounds[split]
        positions_BT = start + np.asarray(indices)[:, None] * length + np.arange(length)
        if positions_BT.size and not (
            start <= positions_BT.min() and positions_BT[:, 0].max() < end
        ):
            raise ValueError(
                f"windows {np.asarray(indices).tolist()} of {length} tokens, but {split} has "
                f"{self.n_windows(split, length)}"
            )
        inside_BT = positions_BT < end
        return np.minimum(positions_BT, end - 1), inside_BT

    def _ids(self, positions_BT: Integers, inside_BT: NDArray[np.bool_]) -> Integers:
        ids_BT = self._stream[positions_BT].astype(np.int64)
        return np.where(inside_BT, ids_BT, self.specials.pad_id)

    def _span_at(self, positions: Integers) -> Integers:
        return np.searchsorted(self.spans.token_start, positions, side="right") - 1

    def _chunk_keys(self, ids_BT: Integers, span_BT: Integers) -> Integers:
        """A number per (sequence, chunk), the same for its tokens; −1 where nothing is pooled.

        Special tokens belong to a span but are not pooled, and a span of which a window sees
        nothing but special tokens is no chunk of that batch.
        """
        special = np.isin(ids_BT, list(self.tokenizer.special_names))
        pooled = (span_BT >= 0) & (self.spans.chunk_id[span_BT] >= 0) & ~special
        row_B1 = np.arange(len(ids_BT))[:, None]
        return np.where(pooled, row_B1 * len(self.spans) + span_BT, -1)

    def _mixture(self, length: int, weights: Mapping[str, float]) -> Mixture:
        key = (length, tuple(sorted(weights.items())))
        if key not in self._mixtures:
            self._mixtures[key] = Mixture(self.windows_by_domain(length), weights)
        return self._mixtures[key]


def _bounds(splits: object) -> dict[str, tuple[int, int]]:
    assert isinstance(splits, dict)
    return {name: (int(splits[name][0]), int(splits[name][1])) for name in SPLITS}


def _spans(path: Path) -> Spans:
    table = pq.read_table(path).combine_chunks()
    concepts = table.column("concept_ids")
    lengths = pc.list_value_length(concepts).to_numpy()
    concepts_NM = np.full((len(lengths), MAX_CONCEPTS), -1, dtype=np.int64)
    concepts_NM[np.arange(MAX_CONCEPTS) < lengths[:, None]] = pc.list_flatten(concepts).to_numpy()
    return Spans(
        chunk_id=table.column("chunk_id").to_numpy(),
        doc_id=table.column("doc_id").to_pylist(),
        split=table.column("split").to_pylist(),
        domain=table.column("domain").to_pylist(),
        token_start=table.column("token_start").to_numpy(),
        token_end=table.column("token_end").to_numpy(),
        n_bytes=table.column("n_bytes").to_numpy(),
        labelled=table.column("labelled").to_numpy(),
        concepts_NM=concepts_NM,
    )
