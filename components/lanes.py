"""One lane of a streamed Hugging Face dataset: its documents as an endless run of tokens.

    <|bos|> document <|endoftext|> <|bos|> document <|endoftext|> …

A lane has the dataset's shards l, l + lanes, … or, where these do not divide, every lanes-th
document. Its state is the dataset's position before the oldest document not yet given out whole,
and the tokens of it that were given.
"""

import copy
from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import datasets
import numpy as np
from datasets.distributed import split_dataset_by_node

from components.loader import LoaderError
from components.order import Integers
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
        text_column: str, lane: int, lanes: int,
    ) -> None:  # fmt: skip
        self._source, self._tokenizer = source, tokenizer
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
                f"lane {self._lane} of {self._lanes} of the dataset has no document; use fewer "
                f"lanes or another split"
            )
        self._epoch += 1
        self._open(None)

    def _text(self, found: Mapping[str, object]) -> str:
        text = found.get(self._text_column)
        if not isinstance(text, str):
            raise LoaderError(
                f"the dataset has no text in column {self._text_column!r}; its "
                f"columns are {sorted(found)}: set text_column"
            )
        return text
