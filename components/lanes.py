"""Lanes of a streamed Hugging Face dataset: its documents as an endless run of tokens each.

    <|bos|> document <|endoftext|> <|bos|> document <|endoftext|> …

A lane has the dataset's shards l, l + lanes, … or, where these do not divide, every lanes-th
document. Its state is the dataset's position before the oldest document not yet given out whole,
and the tokens of it that were given.

Shape suffixes used in this file:
    B batch
"""

import copy
from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import datasets
import numpy as np
import torch
from datasets.distributed import split_dataset_by_node

from components.loader import Contribution, LoaderError
from components.order import Integers
from components.shards import MAX_CONCEPTS
from model.diffusion import Batch
from model.tokenizer import Tokenizer

_DOCUMENTS_AT_ONCE = 16


@dataclass(frozen=True)
class _Document:
    """A document's tokens, and the dataset's position before it."""

    ids: Integers
    position: Mapping[str, object] | None
    """None before the first document of an epoch."""

    epoch: int


class Lane:
    """The documents of one lane as an endless run of tokens."""

    def __init__(
        self, source: datasets.IterableDataset, tokenizer: Tokenizer, *,
        name: str, text_column: str, lane: int, lanes: int,
    ) -> None:  # fmt: skip
        self._source, self._tokenizer, self._name = source, tokenizer, name
        self._text_column, self._lane, self._lanes = text_column, lane, lanes
        self._held: deque[_Document] = deque()
        self._epoch, self._skip, self._n_held = 0, 0, 0
        self._move_to(None, epoch=0, skip=0)

    @property
    def epoch(self) -> int:
        """Times that all documents of the lane were read."""
        return self._held[0].epoch if self._held else self._epoch

    def windows(self, n: int, length: int) -> Integers:
        """The next `n` windows."""
        while self._n_held - self._skip < n * length:
            self._read_on()
        wanted, parts = n * length, []
        while wanted:
            part = self._held[0].ids[self._skip : self._skip + wanted]
            parts.append(part)
            wanted -= len(part)
            self._skip += len(part)
            if self._skip == len(self._held[0].ids):
                self._n_held -= self._skip
                self._skip = 0
                self._held.popleft()
        return np.concatenate(parts).reshape(n, length)

    def state(self) -> dict[str, object]:
        """Where the next token is: a document, and how many of its tokens were given."""
        if self._held:
            first = self._held[0]
            return {"epoch": first.epoch, "skip": self._skip, "position": first.position}
        return {"epoch": self._epoch, "skip": 0, "position": self._position()}

    def restore(self, state: Mapping[str, object]) -> None:
        """Go to where a state was kept."""
        position = state["position"]
        assert position is None or isinstance(position, dict)
        self._move_to(position, epoch=int(str(state["epoch"])), skip=int(str(state["skip"])))

    def close(self) -> None:
        """Stop reading."""
        self._documents.close()

    def _move_to(self, position: Mapping[str, object] | None, *, epoch: int, skip: int) -> None:
        self._epoch, self._skip = epoch, skip
        self._held.clear()
        self._n_held = 0
        self._open(position)

    def _open(self, position: Mapping[str, object] | None) -> None:
        # A dataset that was read keeps its position for ever: each epoch takes a fresh one. Its
        # own epoch stays 0, since another would deal the shards out to other lanes.
        self._dataset = split_dataset_by_node(
            copy.copy(self._source), rank=self._lane, world_size=self._lanes
        )
        self._n_read, self._start = 0, position
        if position is not None:
            self._dataset.load_state_dict(copy.deepcopy(dict(position)))
        self._documents: Generator[Mapping[str, object], None, None] = iter(self._dataset)

    def _position(self) -> Mapping[str, object] | None:
        """The dataset's position before its next document."""
        return self._dataset.state_dict() if self._n_read else self._start

    def _read_on(self) -> None:
        positions, texts = [], []
        for _ in range(_DOCUMENTS_AT_ONCE):
            position = self._position()
            found = next(self._documents, None)
            if found is None:
                break
            self._n_read += 1
            positions.append(position)
            texts.append(self._text(found))
        epoch = self._epoch
        if len(texts) < _DOCUMENTS_AT_ONCE:
            self._next_epoch()
        specials = self._tokenizer.specials
        for position, ids in zip(positions, self._tokenizer.encode_batch(texts), strict=True):
            whole = np.array([specials.bos_id, *ids, specials.eos_id], dtype=np.int64)
            self._held.append(_Document(whole, position, epoch))
            self._n_held += len(whole)

    def _next_epoch(self) -> None:
        if self._n_read == 0 and self._start is None:
            raise LoaderError(
                f"lane {self._lane} of {self._lanes} of the source {self._name!r} has no document; "
                f"use fewer lanes or another split"
            )
        self._epoch += 1
        self._open(None)

    def _text(self, found: Mapping[str, object]) -> str:
        text = found.get(self._text_column)
        if not isinstance(text, str):
            raise LoaderError(
                f"the source {self._name!r} has no text in column {self._text_column!r}; its "
                f"columns are {sorted(found)}: set its text_column"
            )
        return text


class Lanes:
    """A rank's lanes of one source, as batches of windows of which no chunk is known."""

    def __init__(self, lanes: Mapping[int, Lane], length: int) -> None:
        self._lanes, self._length = lanes, length

    def batch(self, lane_B: Integers, sample_ids_B: Integers) -> Batch:
        """The next window of each of these lanes, in this order where one comes twice."""
        ids_BT = np.empty((len(lane_B), self._length), dtype=np.int64)
        for lane in np.unique(lane_B).tolist():
            now = lane_B == lane
            ids_BT[now] = self._lanes[lane].windows(int(now.sum()), self._length)
        return Batch(
            ids_BT=torch.from_numpy(ids_BT),
            chunk_BT=torch.full(ids_BT.shape, -1, dtype=torch.int64),
            concepts_CM=torch.empty((0, MAX_CONCEPTS), dtype=torch.int64),
            labelled_C=torch.empty(0, dtype=torch.bool),
            sample_ids_B=torch.from_numpy(sample_ids_B),
        )

    def given(self, n_windows: int) -> Contribution:
        """What so many windows, of all ranks' lanes, come to."""
        return Contribution(n_windows, n_windows * self._length, epochs=None)

    def state(self, lane: int) -> dict[str, object]:
        """Where one lane stands."""
        return self._lanes[lane].state()

    def restore(self, lane: int, state: Mapping[str, object]) -> None:
        """Put one lane where it stood."""
        self._lanes[lane].restore(state)

    def epoch(self) -> int:
        """How often the rank's lanes were gone through, the least of them."""
        return min(lane.epoch for lane in self._lanes.values())

    def close(self) -> None:
        """Stop reading."""
        for lane in self._lanes.values():
            lane.close()
