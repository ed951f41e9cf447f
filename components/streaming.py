"""Training windows made on the fly from a Hugging Face dataset that is too large to pack.

    batches = streamed(config, tokenizer, length=…, batch_sequences=…, rank=…, world=…)
    batches.batch(step), batches.state(step), batches.restore(state)

Documents come in the dataset's own order, `lanes` of them side by side: lane l has the shards
l, l + lanes, … (every lanes-th document where shards do not divide), and window w of a step comes
from lane w mod lanes. A rank reads its lanes alone, and any number of ranks that divides the lanes
gives the same global batches.

What it cannot do: shuffle globally, start at any step without a state, account for chunks (no
concepts are known: all tokens are unlabelled), or notice that a dataset without a pinned revision
was changed. A state is the dataset's position before the oldest document not yet given out whole,
and the tokens of it that were given: resuming tokenises that document again and skips those.

Shape suffixes used in this file:
    B batch   T position
"""

from collections.abc import Mapping, Sequence

import datasets
import numpy as np
import torch
from pydantic import PositiveInt

from components.lanes import Lane
from components.loader import LoaderError, State, compare
from components.shards import MAX_CONCEPTS
from model.config import Config
from model.diffusion import Batch
from model.tokenizer import Tokenizer


class StreamConfig(Config):
    """One dataset, by what `datasets.load_dataset` calls it."""

    path: str
    """A dataset of the hub, or `json`, `parquet`, `text` with `data_files`."""

    name: str = ""
    """Its configuration; empty: the default one."""

    revision: str = ""
    """Commit of the dataset. Pin it: a dataset that changes cannot be resumed exactly."""

    split: str = "train"
    data_files: tuple[str, ...] = ()
    text_column: str = "text"

    lanes: PositiveInt = 1
    """Parts read side by side: a multiple of every number of ranks that is ever to be used."""


def streamed(
    config: StreamConfig, tokenizer: Tokenizer, *,
    length: int, batch_sequences: int, rank: int = 0, world: int = 1,
) -> "Streamed":  # fmt: skip
    """Batches of the dataset, opened without reading it. `batch_sequences` is of all ranks."""
    if config.lanes % world or batch_sequences % config.lanes:
        raise LoaderError(
            f"{config.lanes} lanes cannot be shared by {world} ranks and fill {batch_sequences} "
            f"sequences evenly: the lanes must be a multiple of the ranks and divide the "
            f"sequences; try lanes={world} and "
            f"batch_sequences={-(-batch_sequences // world) * world}"
        )
    source = datasets.load_dataset(
        config.path,
        config.name or None,
        revision=config.revision or None,
        split=config.split,
        data_files=list(config.data_files) or None,
        streaming=True,
    )
    lanes = {
        lane: Lane(source, tokenizer, text_column=config.text_column, lane=lane, lanes=config.lanes)
        for lane in range(rank, config.lanes, world)
    }
    return Streamed(config, lanes, length, batch_sequences)


class Streamed:
    """Batches in the order of steps, as `components.loader.Batches`."""

    def __init__(
        self, config: StreamConfig, lanes: Mapping[int, Lane], length: int, batch_sequences: int
    ) -> None:
        self._config, self._lanes = config, lanes
        self._length, self._batch_sequences = length, batch_sequences
        self._step = 0

    def batch(self, step: int) -> Batch:
        """See Batches. Steps must come one after the other: a stream has no other order."""
        self._expect(step)
        per_lane = self._batch_sequences // self._config.lanes
        ids_of = {lane: source.windows(per_lane, self._length) for lane, source in
                  self._lanes.items()}  # fmt: skip
        places = [
            (turn * self._config.lanes + lane, lane, turn)
            for turn in range(per_lane)
            for lane in self._lanes
        ]
        ids_BT = np.stack([ids_of[lane][turn] for _, lane, turn in places])
        names_B = step * self._batch_sequences + np.array([place for place, _, _ in places])
        self._step += 1
        return Batch(
            ids_BT=torch.from_numpy(ids_BT),
            chunk_BT=torch.full(ids_BT.shape, -1, dtype=torch.int64),
            concepts_CM=torch.empty((0, MAX_CONCEPTS), dtype=torch.int64),
            labelled_C=torch.empty(0, dtype=torch.bool),
            sample_ids_B=torch.from_numpy(names_B),
        )

    def state(self, step: int) -> State:
        """See Batches: of this rank's lanes; `joined` makes one of all ranks' states."""
        self._expect(step)
        lanes = {str(lane): source.state() for lane, source in self._lanes.items()}
        return {**self._identity(), "step": step, "lanes": lanes}

    def check(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        compare(self._identity(), {k: v for k, v in state.items() if k != "lanes"})
        _lanes_of(state, self._lanes)

    def restore(self, state: Mapping[str, object]) -> None:
        """See Batches. The state may be of more lanes than this rank reads, not of fewer."""
        self.check(state)
        for lane, kept in _lanes_of(state, self._lanes).items():
            self._lanes[lane].restore(kept)
        self._step = int(str(state["step"]))

    def close(self) -> None:
        """Let the dataset's files go. Half-read files complain at the end of the program."""
        for lane in self._lanes.values():
            lane.close()

    def epochs(self) -> dict[int, int]:
        """How often each of this rank's lanes has been through its documents."""
        return {lane: source.epoch for lane, source in self._lanes.items()}

    def _identity(self) -> State:
        dataset = self._config.model_dump(mode="json", exclude_defaults=True)
        return {
            "kind": "streamed",
            "dataset": dataset,
            "length": self._length,
            "batch_sequences": self._batch_sequences,
        }

    def _expect(self, step: int) -> None:
        if step != self._step:
            raise LoaderError(
                f"step {step} was asked for, but the stream stands at step {self._step}; streamed "
                f"batches come in order: restore a state kept at step {step}"
            )


def joined(states: Sequence[Mapping[str, object]]) -> State:
    """The states that all ranks kept at one step as one, for any number of ranks."""
    for other in states[1:]:
        compare(
            {k: v for k, v in states[0].items() if k != "lanes"},
            {k: v for k, v in other.items() if k != "lanes"},
        )
    steps = {str(state["step"]) for state in states}
    if len(steps) > 1:
        raise LoaderError(f"the ranks' states are of steps {sorted(steps)}; join those of one")
    lanes: State = {}
    for state in states:
        kept = state["lanes"]
        assert isinstance(kept, dict)
        lanes.update(kept)
    return {**states[0], "lanes": lanes}


def _lanes_of(
    state: Mapping[str, object], wanted: Mapping[int, Lane]
) -> dict[int, Mapping[str, object]]:
    lanes = state.get("lanes")
    kept = lanes if isinstance(lanes, dict) else {}
    missing = [lane for lane in wanted if str(lane) not in kept]
    if missing:
        raise LoaderError(
            f"this rank reads lanes {sorted(wanted)}, but the state has only {sorted(kept)}; "
            f"join the states of all ranks (components.streaming.joined)"
        )
    return {lane: kept[str(lane)] for lane in wanted}
