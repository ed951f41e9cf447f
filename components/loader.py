"""Batches of training, by step: sources of windows, mixed by weight, shared by ranks (method §4.9).

    loader = Loader(sources, weights, length=…, batch_sequences=…, seed=…, rank=…, world=…)
    loader.batch(step)         this rank's sequences of the global batch of a step
    loader.state(step)         a small JSON object that `check` compares before a run goes on
    loader.accounting(step)    what every source gave before this step, exactly

A batch is a pure function of (seed, step): ranks need no word with each other, any step can be the
first, and the global batch is the same however many ranks share it. Nothing is shuffled in memory.

Shape suffixes used in this file:
    B batch
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch

from components.order import Integers, Mixture, Order, Single
from components.tokens import TokenStream
from model.diffusion import Batch

State = dict[str, object]
"""JSON, below 2 kB for a score of sources."""

LANES = "lanes"
"""In a state: where each lane of streamed sources stands; a rank's own has its own lanes."""

DIGEST_CHARS = 20


class LoaderError(ValueError):
    """Batches would not be those that a run has seen so far, or that a person asked for."""


class Batches(Protocol):
    """Where training gets its batches from."""

    def batch(self, step: int) -> Batch:
        """This rank's sequences of a step, counted from 0."""
        ...

    def state(self, step: int) -> State:
        """What must be kept to go on with this step."""
        ...

    def check(self, state: Mapping[str, object]) -> None:
        """Raise LoaderError, with both values, unless a kept state is of these very batches."""
        ...

    def restore(self, state: Mapping[str, object]) -> None:
        """Go on where the state was kept. Raises LoaderError as `check` does."""
        ...

    def accounting(self, step: int) -> dict[str, "Contribution"]:
        """What every source gave to the global batches before this step, exactly."""
        ...

    def close(self) -> None:
        """Let go of threads and half-read files."""
        ...


@dataclass(frozen=True)
class Source:
    """Training windows of one stream under a name of their own."""

    name: str
    stream: TokenStream
    chosen: Integers | None = None
    """Windows that belong to the source, rising; None: every one, listed nowhere."""

    def size(self, length: int) -> int:
        """Windows of `length` tokens in an epoch."""
        if self.chosen is None:
            return self.stream.n_windows("train", length)
        return len(self.chosen)

    def windows(self, elements: Integers) -> Integers:
        """The stream's windows that are these elements of the source."""
        return elements if self.chosen is None else self.chosen[elements]

    def missing_tokens(self, length: int) -> int:
        """Tokens that the source's last element lacks to a whole window."""
        n_windows = self.stream.n_windows("train", length)
        if self.chosen is not None and self.chosen[-1] != n_windows - 1:
            return 0
        return n_windows * length - self.stream.n_tokens("train")


@dataclass(frozen=True)
class Contribution:
    """What a source gave to the steps so far, over all ranks."""

    n_windows: int
    n_tokens: int
    """The padding of splits to whole blocks included, that of short windows not."""

    epochs: float | None
    """None: of a stream, whose length nobody knows."""


class Loader:
    """Windows of one source in a global shuffle, or of several mixed by weight."""

    def __init__(
        self, sources: Sequence[Source], weights: Mapping[str, float], *,
        length: int, batch_sequences: int, seed: int, rank: int = 0, world: int = 1,
    ) -> None:  # fmt: skip
        """`batch_sequences` counts the sequences of all ranks. One source needs no weights."""
        if batch_sequences % world:
            raise LoaderError(
                f"batch_sequences is {batch_sequences}, which {world} ranks cannot share evenly; "
                f"try {-(-batch_sequences // world) * world}"
            )
        check_tokenizers(sources)
        self.order = _order(sources, weights, length)
        self.length, self.batch_sequences, self.seed = length, batch_sequences, seed
        self._rank, self._world = rank, world
        self._sources = {source.name: source for source in sources}
        self._weights = dict(weights)

    def batch(self, step: int) -> Batch:
        """See Batches. Sample ids are places in the global order, so the noise of a sequence does
        not depend on the number of ranks either."""
        places_B = step * self.batch_sequences + np.arange(
            self._rank, self.batch_sequences, self._world
        )
        drawn = self.order.at(places_B, self.seed)
        rows, parts = [], []
        for k in np.unique(drawn.source_N).tolist():
            source = self._sources[self.order.names[k]]
            rows_B = np.flatnonzero(drawn.source_N == k)
            windows_B = source.windows(drawn.element_N[rows_B])
            rows.append(rows_B)
            parts.append(
                source.stream.batch("train", self.length, windows_B, sample_ids=places_B[rows_B])
            )
        return merged(rows, parts)

    def accounting(self, step: int) -> dict[str, Contribution]:
        """What each source gave to the global batches before this step: a closed form."""
        given = self.order.given(step * self.batch_sequences, self.seed)
        found = {}
        for name, share in zip(self.order.names, given, strict=True):
            source = self._sources[name]
            missing = share.n_last * source.missing_tokens(self.length)
            found[name] = Contribution(
                n_windows=share.n_elements,
                n_tokens=share.n_elements * self.length - missing,
                epochs=share.n_elements / source.size(self.length),
            )
        return found

    def state(self, step: int) -> State:
        """See Batches. The number of ranks is no part of it."""
        sources = {
            f"source {name}": f"{source.stream.digest[:DIGEST_CHARS]}, weight "
            f"{self._weights.get(name, 'none')}"
            for name, source in self._sources.items()
        }
        return {
            "kind": "windows",
            "step": step,
            "seed": self.seed,
            "length": self.length,
            "batch_sequences": self.batch_sequences,
            **sources,
        }

    def check(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        compare(self.state(0), state)

    def restore(self, state: Mapping[str, object]) -> None:
        """See Batches. There is nothing to move: a step's batch depends on no other step."""
        self.check(state)

    def close(self) -> None:
        """See Batches. The streams stay open: they are somebody else's."""


def of_stream(
    stream: TokenStream, domain_weights: Mapping[str, float], *,
    length: int, batch_sequences: int, seed: int, rank: int = 0, world: int = 1,
) -> Loader:  # fmt: skip
    """All training windows of one stream; with weights, its domains as the sources of a mixture."""
    sources = [Source("train", stream)]
    if domain_weights:
        windows = stream.windows_by_domain(length)
        sources = [Source(domain, stream, chosen) for domain, chosen in windows.items()]
    return Loader(
        sources, domain_weights, length=length, batch_sequences=batch_sequences, seed=seed,
        rank=rank, world=world,
    )  # fmt: skip


def compare(ours: Mapping[str, object], theirs: Mapping[str, object]) -> None:
    """Raise LoaderError with every difference of two states but the step."""
    differences = [
        f"{name} is {_shown(ours, name)} here and {_shown(theirs, name)} in the state"
        for name in sorted({*ours, *theirs} - {"step"})
        if _shown(ours, name) != _shown(theirs, name)
    ]
    if differences:
        raise LoaderError(
            f"this run would not see the batches that the checkpoint's run would have: "
            f"{'; '.join(differences)}. Go back to those settings and data, or start a new run."
        )


def joined(states: Sequence[Mapping[str, object]]) -> State:
    """The states that all ranks kept at one step as one, for any number of ranks."""
    steps = {str(state["step"]) for state in states}
    if len(steps) > 1:
        raise LoaderError(f"the ranks' states are of steps {sorted(steps)}; join those of one")
    lanes: dict[str, object] = {}
    for state in states:
        compare(without_lanes(states[0]), without_lanes(state))
        kept = state.get(LANES, {})
        assert isinstance(kept, dict)
        lanes.update(kept)
    whole = without_lanes(states[0])
    in_order = {lane: lanes[lane] for lane in sorted(lanes, key=int)}
    return {**whole, LANES: in_order} if lanes else whole


def without_lanes(state: Mapping[str, object]) -> State:
    """The part of a state that every rank has alike."""
    return {name: value for name, value in state.items() if name != LANES}


def merged(rows: Sequence[Integers], parts: Sequence[Batch]) -> Batch:
    """One batch of several: the rows in their places, the chunk tables one after the other."""
    if len(parts) == 1:
        return parts[0]
    n_before, shifted = 0, []
    for part in parts:
        chunk_BT = torch.where(part.chunk_BT < 0, part.chunk_BT, part.chunk_BT + n_before)
        shifted.append(replace(part, chunk_BT=chunk_BT))
        n_before += len(part.labelled_C)
    back_B = torch.from_numpy(np.argsort(np.concatenate(rows)))
    return Batch(
        ids_BT=torch.cat([part.ids_BT for part in shifted])[back_B],
        chunk_BT=torch.cat([part.chunk_BT for part in shifted])[back_B],
        concepts_CM=torch.cat([part.concepts_CM for part in shifted]),
        labelled_C=torch.cat([part.labelled_C for part in shifted]),
        sample_ids_B=torch.cat([part.sample_ids_B for part in shifted])[back_B],
    )


def _shown(state: Mapping[str, object], name: str) -> str:
    return repr(state[name]) if name in state else "not given"


def _order(sources: Sequence[Source], weights: Mapping[str, float], length: int) -> Order:
    sizes = {source.name: source.size(length) for source in sources}
    if len(sizes) < len(sources):
        raise LoaderError(
            f"two of the sources {[source.name for source in sources]} have one name; give each "
            f"a name of its own"
        )
    empty = [name for name, size in sizes.items() if size == 0]
    if empty:
        raise LoaderError(f"the sources {empty} have no training window; leave them out")
    if weights:
        return Mixture(sizes, weights)
    if len(sizes) > 1:
        raise LoaderError(
            f"{len(sizes)} sources and no weights; in proportion to their windows these would be "
            f"{sizes}"
        )
    return Single(*next(iter(sizes.items())))


def check_tokenizers(sources: Sequence[Source]) -> None:
    """Raise LoaderError unless all sources are written in one vocabulary."""
    digests = {source.name: source.stream.tokenizer_digest for source in sources}
    if len(set(digests.values())) > 1:
        shown = {name: digest[:DIGEST_CHARS] for name, digest in digests.items()}
        raise LoaderError(
            f"the sources are written in different vocabularies (SHA-256 of tokenizer.json: "
            f"{shown}); pack all of them with one tokenizer.json as `given_tokenizer`"
        )
