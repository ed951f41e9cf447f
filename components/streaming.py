"""Training windows made on the fly from Hugging Face datasets that are too large to pack.

    batches = streamed(sources, weights, tokenizer, lanes=…, length=…, batch_sequences=…, …)
    batches.batch(step), batches.state(step), batches.restore(state), batches.accounting(step)

Windows come from `lanes` readers side by side: window w of a step from lane w mod lanes. A rank
has its lanes to itself, and any number of ranks that divides the lanes gives the same global
batches. Within a lane, sources take turns by their weights, in cycles with exact quotas; each goes
through its part of the dataset in the dataset's own order, epoch after epoch.

What it cannot do: shuffle globally (order the shards of the dataset, or pack it), start at any
step without a state, tell chunks apart (no concepts are known: all tokens are unlabelled), or
notice that a dataset without a pinned revision was changed.

Shape suffixes used in this file:
    B batch   T position
"""

from collections.abc import Mapping, Sequence

import datasets
import numpy as np
import torch

from components.lanes import Lane
from components.loader import LoaderError, State, compare
from components.order import Integers, Shares
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


def streamed(
    sources: Mapping[str, StreamConfig], weights: Mapping[str, float], tokenizer: Tokenizer, *,
    lanes: int, length: int, batch_sequences: int, seed: int, rank: int = 0, world: int = 1,
) -> "Streamed":  # fmt: skip
    """Batches of datasets by weight, opened without reading them.

    `batch_sequences` counts the sequences of all ranks; `lanes` is a multiple of every number of
    ranks that is ever to be used.
    """
    if lanes % world or batch_sequences % lanes:
        raise LoaderError(
            f"{lanes} lanes cannot be shared by {world} ranks and fill {batch_sequences} sequences "
            f"evenly: the lanes must be a multiple of the ranks and divide the sequences; try "
            f"lanes={world} and batch_sequences={-(-batch_sequences // world) * world}"
        )
    if set(sources) != set(weights):
        raise LoaderError(
            f"the sources are {sorted(sources)}, but weights are given for {sorted(weights)}; "
            f"each source needs one"
        )
    opened = {name: _opened(config) for name, config in sources.items()}
    own = {
        lane: {
            name: Lane(
                dataset, tokenizer, text_column=sources[name].text_column, lane=lane, lanes=lanes
            )
            for name, dataset in opened.items()
        }
        for lane in range(rank, lanes, world)
    }
    identity: State = {
        "kind": "streamed",
        "seed": seed,
        "length": length,
        "batch_sequences": batch_sequences,
        "n_lanes": lanes,
        **{
            f"source {name}": {
                "weight": weights[name],
                **config.model_dump(mode="json", exclude_defaults=True),
            }
            for name, config in sources.items()
        },
    }
    return Streamed(
        own, Shares(weights), identity,
        lanes=lanes, length=length, batch_sequences=batch_sequences, seed=seed,
    )  # fmt: skip


class Streamed:
    """Batches in the order of steps, as `components.loader.Batches`."""

    def __init__(
        self, own: Mapping[int, Mapping[str, Lane]], shares: Shares, identity: State, *,
        lanes: int, length: int, batch_sequences: int, seed: int,
    ) -> None:  # fmt: skip
        self._own, self._shares, self._identity = own, shares, identity
        self._lanes, self._length, self._seed = lanes, length, seed
        self._batch_sequences = batch_sequences
        self._per_lane = batch_sequences // lanes
        self._step = 0

    def batch(self, step: int) -> Batch:
        """See Batches. Steps must come one after the other: a stream has no other order."""
        self._expect(step)
        ids_of = {lane: self._windows(step, lane) for lane in self._own}
        order = [(turn, lane) for turn in range(self._per_lane) for lane in self._own]
        ids_BT = np.stack([ids_of[lane][turn] for turn, lane in order])
        within_B = np.array([turn * self._lanes + lane for turn, lane in order])
        self._step += 1
        return Batch(
            ids_BT=torch.from_numpy(ids_BT),
            chunk_BT=torch.full(ids_BT.shape, -1, dtype=torch.int64),
            concepts_CM=torch.empty((0, MAX_CONCEPTS), dtype=torch.int64),
            labelled_C=torch.empty(0, dtype=torch.bool),
            sample_ids_B=torch.from_numpy(step * self._batch_sequences + within_B),
        )

    def accounting(self, step: int) -> dict[str, int]:
        """Windows that each source gave to the global batches before this step: a closed form."""
        counts = sum(
            self._shares.counts(step * self._per_lane, self._seed_of(lane))
            for lane in range(self._lanes)
        )
        return dict(zip(self._shares.names, np.asarray(counts).tolist(), strict=True))

    def epochs(self) -> dict[str, int]:
        """How often each source's part of this rank was gone through, the least of its lanes."""
        return {
            name: min(lanes[name].epoch for lanes in self._own.values())
            for name in self._shares.names
        }

    def state(self, step: int) -> State:
        """See Batches: of this rank's lanes; `joined` makes one of all ranks' states."""
        self._expect(step)
        lanes = {
            str(lane): {name: source.state() for name, source in sources.items()}
            for lane, sources in self._own.items()
        }
        return {**self._identity, "step": step, "lanes": lanes}

    def check(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        compare(self._identity, _without_lanes(state))
        self._lanes_of(state)

    def restore(self, state: Mapping[str, object]) -> None:
        """See Batches. The state may be of more lanes than this rank reads, not of fewer."""
        self.check(state)
        for lane, kept in self._lanes_of(state).items():
            for name, source in self._own[lane].items():
                source.restore(kept[name])
        self._step = int(str(state["step"]))

    def close(self) -> None:
        """Let the datasets' files go. Half-read files complain at the end of the program."""
        for sources in self._own.values():
            for source in sources.values():
                source.close()

    def _windows(self, step: int, lane: int) -> Integers:
        """The windows of a lane in a step, in turn from the sources that its places have."""
        places = step * self._per_lane + np.arange(self._per_lane)
        source_B = self._shares.at(places, self._seed_of(lane)).source_N
        ids_BT = np.empty((self._per_lane, self._length), dtype=np.int64)
        for k in np.unique(source_B).tolist():
            now = source_B == k
            reader = self._own[lane][self._shares.names[k]]
            ids_BT[now] = reader.windows(int(now.sum()), self._length)
        return ids_BT

    def _seed_of(self, lane: int) -> int:
        """Lanes take their turns differently, or a step would be all of one source."""
        return self._seed * self._lanes + lane

    def _lanes_of(self, state: Mapping[str, object]) -> dict[int, dict[str, dict[str, object]]]:
        lanes = state.get("lanes")
        kept = lanes if isinstance(lanes, dict) else {}
        if any(str(lane) not in kept for lane in self._own):
            raise LoaderError(
                f"this rank reads lanes {sorted(self._own)}, but the state has only "
                f"{sorted(kept)}; join the states of all ranks (components.streaming.joined)"
            )
        return {lane: kept[str(lane)] for lane in self._own}

    def _expect(self, step: int) -> None:
        if step != self._step:
            raise LoaderError(
                f"step {step} was asked for, but the stream stands at step {self._step}; streamed "
                f"batches come in order: restore a state kept at step {step}"
            )


def joined(states: Sequence[Mapping[str, object]]) -> State:
    """The states that all ranks kept at one step as one, for any number of ranks."""
    steps = {str(state["step"]) for state in states}
    if len(steps) > 1:
        raise LoaderError(f"the ranks' states are of steps {sorted(steps)}; join those of one")
    lanes: State = {}
    for state in states:
        compare(_without_lanes(states[0]), _without_lanes(state))
        kept = state["lanes"]
        assert isinstance(kept, dict)
        lanes.update(kept)
    return {**states[0], "lanes": lanes}


def _opened(config: StreamConfig) -> datasets.IterableDataset:
    return datasets.load_dataset(
        config.path,
        config.name or None,
        revision=config.revision or None,
        split=config.split,
        data_files=list(config.data_files) or None,
        streaming=True,
    )


def _without_lanes(state: Mapping[str, object]) -> State:
    return {name: value for name, value in state.items() if name != "lanes"}
