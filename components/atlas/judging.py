"""A judge reads what the stages said about chunks (paper §4, app. C; method §1.5).

    tags        a tag and the chunk it was given to
    concepts    the concept that a chunk's tag stands for
    labels      a concept that the annotator gave to a chunk

Of each a sample is judged, and beside it the same chunks with the names of other pairs: what a
judge says of the wrong names is the floor that the others stand on. Means and the share that is
acceptable have 95% intervals, documents resampled.

Shape suffixes: G documents   N pairs
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

import numpy as np

from components import contracts, judges
from components.atlas.judging_config import JudgeConfig
from components.chunks import texts
from components.judges import Judge, Kind, Pair
from components.scores import Floats, Score, Scorer, Scores
from model.events import Events, ignore
from model.intervals import by_group

_ROWS_PER_BATCH = 4096
_TRIES = 20


def judge(
    documents: Path, chunks: Path, tags: Path, concepts: Path, labels: Path, scores: Path,
    config: JudgeConfig, events: Events = ignore,
) -> int:  # fmt: skip
    """Judge samples of tags, concepts and labels. Returns the number of scores."""
    given: dict[str, Callable[[], Iterator[_Given]]] = {
        "tags": lambda: _tags(tags),
        "concepts": lambda: _concepts(tags, concepts),
        "labels": lambda: _labels(labels, concepts),
    }
    sampled = {name: _drawn(stream(), config) for name, stream in given.items()}
    for name, ones in list(sampled.items()):
        sampled[f"{name}_shuffled"] = _shuffled(ones, _carried(given[name](), ones), config)
    if empty := [name for name, ones in sampled.items() if not ones]:
        raise ValueError(
            f"there is nothing to judge of {', '.join(empty)}: chunks need a name each, and a name "
            f"that they do not carry to compare with; a library of two concepts is the least"
        )
    read = _read(documents, chunks, {one.chunk_id for ones in sampled.values() for one in ones})
    reader = judges.judge_of(config.judge, events)
    pairs = [
        Pair(read[one.chunk_id].text, one.name, one.description, one.kind)
        for ones in sampled.values()
        for one in ones
    ]
    judged = iter(reader.scores(pairs))  # at once: what pairs share is read or encoded once
    found: Scores = {}
    for name, ones in sampled.items():
        value_N = np.fromiter(islice(judged, len(ones)), np.float64)
        doc_ids = [read[one.chunk_id].doc_id for one in ones]
        found |= _scores(name, value_N, doc_ids, reader, config)
    if reader.calibration is not None:
        found["judge_auc"] = reader.calibration.auc
        found["judge_calibration_error"] = reader.calibration.error
        for name, error in reader.calibration.error_elsewhere.items():
            found[f"judge_calibration_error_on_{name}"] = error
    text = {name: score.model_dump() for name, score in found.items()}
    (scores / "scores.json").write_text(json.dumps(text, indent=1, allow_nan=False) + "\n")
    contracts.seal(scores, contracts.SCORES)
    return len(found)


@dataclass(frozen=True)
class _Given:
    """A name that was given to a chunk."""

    chunk_id: int
    name: str
    description: str
    kind: Kind


@dataclass(frozen=True)
class _Chunk:
    text: str
    doc_id: str


def _tags(tags: Path) -> Iterator[_Given]:
    for batch in contracts.stream(tags, contracts.TAGS, rows=_ROWS_PER_BATCH):
        for chunk_id, tag in zip(batch["chunk_id"], batch["tag"], strict=True):
            yield _Given(chunk_id, tag, "", "tag")


def _concepts(tags: Path, concepts: Path) -> Iterator[_Given]:
    """Concepts whose members a chunk was tagged with; rows of one chunk follow each other."""
    cards = contracts.read(concepts, contracts.CONCEPTS).to_pylist()
    card_of = {member: card for card in cards for member in card["members"]}
    for chunk_id, ones in groupby(_tags(tags), key=lambda one: one.chunk_id):
        found = {card_of[one.name]["name"]: card_of[one.name] for one in ones
                 if one.name in card_of}  # fmt: skip
        for name, card in found.items():
            yield _Given(chunk_id, name, card["description"], "concept")


def _labels(labels: Path, concepts: Path) -> Iterator[_Given]:
    cards = contracts.read(concepts, contracts.CONCEPTS).to_pylist()
    card_of = {card["concept_id"]: card for card in cards}
    for batch in contracts.stream(labels, contracts.LABELS, rows=_ROWS_PER_BATCH):
        for chunk_id, concept_id in zip(batch["chunk_id"], batch["concept_id"], strict=True):
            card = card_of[concept_id]
            yield _Given(chunk_id, card["name"], card["description"], "label")


def _drawn(given: Iterable[_Given], config: JudgeConfig) -> list[_Given]:
    """As many at random in one pass, whatever their number (a reservoir)."""
    draw = random.Random(config.seed)
    kept: list[_Given] = []
    for seen, one in enumerate(given):
        place = seen if seen < config.n_pairs else draw.randrange(seen + 1)
        if place < config.n_pairs:
            kept[place : place + 1] = [one]
    return sorted(kept, key=lambda one: (one.chunk_id, one.name))


def _carried(given: Iterable[_Given], ones: Sequence[_Given]) -> dict[int, set[str]]:
    """All names of the chunks that were drawn."""
    carried: dict[int, set[str]] = {one.chunk_id: set() for one in ones}
    for one in given:
        if one.chunk_id in carried:
            carried[one.chunk_id].add(one.name)
    return carried


def _shuffled(
    ones: Sequence[_Given], carried: Mapping[int, set[str]], config: JudgeConfig
) -> list[_Given]:
    """Each chunk with the name of another pair that it does not carry, where there is one."""
    draw = np.random.default_rng((config.seed, 1))
    shuffled = []
    for one in ones:
        for other in draw.integers(len(ones), size=_TRIES).tolist():
            if ones[other].name not in carried[one.chunk_id]:
                wrong = ones[other]
                shuffled.append(_Given(one.chunk_id, wrong.name, wrong.description, one.kind))
                break
    return shuffled


def _read(documents: Path, chunks: Path, wanted: set[int]) -> dict[int, _Chunk]:
    return {chunk_id: chunk for chunk_id, chunk in _all(documents, chunks) if chunk_id in wanted}


def _all(documents: Path, chunks: Path) -> Iterator[tuple[int, _Chunk]]:
    for batch in texts(documents, chunks, rows=_ROWS_PER_BATCH):
        columns = (batch[column] for column in ("chunk_id", "text", "doc_id"))
        for chunk_id, text, doc_id in zip(*columns, strict=True):
            yield chunk_id, _Chunk(text, doc_id)


def _scores(
    name: str, value_N: Floats, doc_ids: Sequence[str], reader: Judge, config: JudgeConfig
) -> Scores:
    """Mean and acceptable share of those that the judge could score."""
    scored_N = np.isfinite(value_N)
    if not scored_N.any():
        raise ValueError(
            f"{reader.name} scored none of {len(value_N)} pairs of {name}; does it answer in JSON? "
            f"Name another language model, or the judge of kind 'embedding'"
        )
    documents, group_N = np.unique(doc_ids, return_inverse=True)
    group_N = group_N[scored_N]
    n_G = by_group(np.ones(len(group_N)), group_N, len(documents))
    note = f"{len(group_N)} of {len(value_N)} pairs, judge: {reader.name}"
    scorer = Scorer(config.bootstrap_draws, config.seed)

    def mean_of(value_N: Floats, unit: str) -> Score:
        sum_G = by_group(value_N[scored_N], group_N, len(documents))
        return scorer.ratio(sum_G, n_G, unit, "interpretation", note)

    acceptable_N = (value_N >= reader.acceptable_from).astype(np.float64)
    return {
        f"judged_{name}": mean_of(value_N, reader.unit),
        f"judged_{name}_acceptable": mean_of(acceptable_N, "share of pairs"),
    }
