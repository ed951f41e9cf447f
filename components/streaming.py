"""Training windows made on the fly from Hugging Face datasets that are too large to pack.

    batches = streamed(sources, weights, tokenizer, lanes=…, length=…, batch_sequences=…, …)
    batches.batch(step), batches.state(step), batches.restore(state), batches.accounting(step)

Windows come from `lanes` readers side by side: window w of a step from lane w mod lanes. A rank
has its lanes to itself, and any number of ranks that divides the lanes gives the same global
batches. Within a lane, sources take turns by their weights, in cycles with exact quotas; each goes
through its part of the dataset in the dataset's own order, epoch after epoch. Packed sources may be
among them: those are shuffled, and keep their chunks and concepts.

What it cannot do: shuffle a dataset globally (order its shards, or pack it), start at any step
without a state, tell a dataset's chunks apart (no concepts are known: all its tokens are
unlabelled), or notice that a dataset without a pinned revision was changed.

Shape suffixes used in this file:
    B batch   N places, anything flat
"""

from collections.abc import Mapping, Sequence

import datasets
import numpy as np

from components.data_config import StreamedSource
from components.dealt import Dealt
from components.lanes import Lane, Lanes
from components.loader import (
    DIGEST_CHARS,
    LANES,
    Contribution,
    LoaderError,
    Source,
    State,
    compare,
    merged,
    without_lanes,
)
from components.order import CYCLE, Shares
from model.diffusion import Batch
from model.tokenizer import Tokenizer


def streamed(
    sources: Mapping[str, StreamedSource], weights: Mapping[str, float], tokenizer: Tokenizer, *,
    lanes: int, length: int, batch_sequences: int, seed: int, rank: int = 0, world: int = 1,
    packed: Sequence[Source] = (),
) -> "Streamed":  # fmt: skip
    """Batches of datasets by weight, opened without reading them, and of packed sources.

    `batch_sequences` counts the sequences of all ranks; `lanes` is a multiple of every number of
    ranks that is ever to be used.
    """
    if lanes % world or batch_sequences % lanes:
        raise LoaderError(
            f"{lanes} lanes cannot be shared by {world} ranks and fill {batch_sequences} sequences "
            f"evenly: the lanes must be a multiple of the ranks and divide the sequences; try "
            f"lanes={world} and batch_sequences={-(-batch_sequences // world) * world}"
        )
    names = {*sources, *(source.name for source in packed)}
    if names != set(weights):
        raise LoaderError(
            f"the sources are {sorted(names)}, but weights are given for {sorted(weights)}; "
            f"each source needs one"
        )
    own = range(rank, lanes, world)
    readers: dict[str, Lanes | Dealt] = {}
    identity: State = {
        "kind": "streamed", "seed": seed, "length": length, "batch_sequences": batch_sequences,
        "n_lanes": lanes,
    }  # fmt: skip
    for name, config in sources.items():
        readers[name] = _lanes_of(name, config, tokenizer, own=own, lanes=lanes, length=length)
        said = config.model_dump(mode="json", exclude_defaults=True)
        identity[f"source {name}"] = {"weight": weights[name], **said}
    for source in packed:
        readers[source.name] = Dealt(source, length, lanes, seed)
        said = {"digest": source.stream.digest[:DIGEST_CHARS]}
        identity[f"source {source.name}"] = {"weight": weights[source.name], **said}
    return Streamed(
        readers, Shares(weights), identity,
        own=own, lanes=lanes, length=length, batch_sequences=batch_sequences, seed=seed,
    )  # fmt: skip


class Streamed:
    """Batches in the order of steps, as `components.loader.Batches`."""

    def __init__(
        self, readers: Mapping[str, Lanes | Dealt], shares: Shares, identity: State, *,
        own: Sequence[int], lanes: int, length: int, batch_sequences: int, seed: int,
    ) -> None:  # fmt: skip
        self._readers, self._shares, self._identity = readers, shares, identity
        self._own, self._lanes, self._length, self._seed = own, lanes, length, seed
        self._batch_sequences = batch_sequences
        self._per_lane = batch_sequences // lanes
        self._step = 0

    def batch(self, step: int) -> Batch:
        """See Batches. Steps must come one after the other: a stream has no other order."""
        self._expect(step)
        turns = step * self._per_lane + np.arange(self._per_lane)
        drawn = [self._shares.at(turns, self._seed_of(lane)) for lane in self._own]
        source_B = np.stack([one.source_N for one in drawn], axis=1).ravel()
        within_B = np.stack([one.element_N for one in drawn], axis=1).ravel()
        lane_B = np.tile(np.array(self._own), self._per_lane)
        sample_ids_B = np.repeat(turns, len(self._own)) * self._lanes + lane_B
        rows, parts = [], []
        for k in np.unique(source_B).tolist():
            rows_B = np.flatnonzero(source_B == k)
            reader = self._readers[self._shares.names[k]]
            lanes, names = lane_B[rows_B], sample_ids_B[rows_B]
            if isinstance(reader, Dealt):
                parts.append(reader.batch(lanes, within_B[rows_B], names))
            else:
                parts.append(reader.batch(lanes, names))
            rows.append(rows_B)
        self._step += 1
        return merged(rows, parts)

    def accounting(self, step: int) -> dict[str, Contribution]:
        """See Batches. Whole cycles by their quotas, the places of the last one by themselves."""
        n_cycles, n_rest = divmod(step * self._per_lane, CYCLE)
        rest = n_cycles * CYCLE + np.arange(n_rest)
        drawn = [self._shares.at(rest, self._seed_of(lane)) for lane in range(self._lanes)]
        source_N = np.concatenate([one.source_N for one in drawn])
        within_N = np.concatenate([one.element_N for one in drawn])
        lane_N = np.repeat(np.arange(self._lanes), n_rest)
        found = {}
        for k, name in enumerate(self._shares.names):
            now_N, n_whole = source_N == k, n_cycles * int(self._shares.quotas[k])
            reader = self._readers[name]
            if isinstance(reader, Dealt):
                found[name] = reader.given(n_whole, lane_N[now_N], within_N[now_N])
            else:
                found[name] = reader.given(n_whole * self._lanes + int(now_N.sum()))
        return found

    def epochs(self) -> dict[str, int]:
        """How often each stream's part of this rank was gone through, the least of its lanes."""
        return {name: lanes.epoch() for name, lanes in self._streams.items()}

    def state(self, step: int) -> State:
        """See Batches: of this rank's lanes; `loader.joined` makes one of all ranks' states."""
        self._expect(step)
        lanes = {
            str(lane): {name: source.state(lane) for name, source in self._streams.items()}
            for lane in self._own
        }
        return {**self._identity, "step": step, LANES: lanes}

    def check(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        compare(self._identity, without_lanes(state))
        self._kept(state)

    def restore(self, state: Mapping[str, object]) -> None:
        """See Batches. The state may be of more lanes than this rank reads, not of fewer."""
        self.check(state)
        for lane, kept in self._kept(state).items():
            for name, source in self._streams.items():
                source.restore(lane, kept[name])
        self._step = int(str(state["step"]))

    def close(self) -> None:
        """See Batches. Half-read files complain at the end of the program."""
        for source in self._streams.values():
            source.close()

    @property
    def _streams(self) -> dict[str, Lanes]:
        return {name: one for name, one in self._readers.items() if isinstance(one, Lanes)}

    def _seed_of(self, lane: int) -> int:
        """Lanes take their turns differently, or a step would be all of one source."""
        return self._seed * self._lanes + lane

    def _kept(self, state: Mapping[str, object]) -> dict[int, dict[str, dict[str, object]]]:
        """Where each of this rank's lanes stood, by source."""
        lanes = state.get(LANES)
        kept = lanes if isinstance(lanes, dict) else {}
        if any(str(lane) not in kept for lane in self._own):
            raise LoaderError(
                f"this rank reads lanes {sorted(self._own)}, but the state has only "
                f"{sorted(kept)}; join the states of all ranks (components.loader.joined)"
            )
        return {lane: kept[str(lane)] for lane in self._own}

    def _expect(self, step: int) -> None:
        if step != self._step:
            raise LoaderError(
                f"step {step} was asked for, but the stream stands at step {self._step}; streamed "
                f"batches come in order: restore a state kept at step {step}"
            )


def _lanes_of(
    name: str, config: StreamedSource, tokenizer: Tokenizer, *,
    own: Sequence[int], lanes: int, length: int,
) -> Lanes:  # fmt: skip
    """A rank's lanes of one dataset. Nothing but the dataset's list of files is read."""
    dataset = _opened(name, config)
    text_column = config.text_column
    return Lanes(
        {
            lane: Lane(
                dataset, tokenizer, name=name, text_column=text_column, lane=lane, lanes=lanes
            )
            for lane in own
        },
        length,
    )


def _opened(name: str, config: StreamedSource) -> datasets.IterableDataset:
    try:
        return datasets.load_dataset(
            config.path,
            config.name or None,
            revision=config.revision or None,
            split=config.split,
            data_files=list(config.data_files) or None,
            streaming=True,
        )
    except (OSError, ValueError) as error:  # no such dataset, configuration, file or split
        raise LoaderError(
            f"the source {name!r} cannot be opened: datasets.load_dataset({config.path!r}, "
            f"{config.name!r}, split={config.split!r}) says: {error}"
        ) from error
