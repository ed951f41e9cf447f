"""What the stages said about chunks, judged."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from components import contracts, hashing, judges
from components.atlas.judging import judge
from components.atlas.judging_config import JudgeConfig
from components.judges import Pair
from tests.components.endpoint import Body, Reply, serving
from tests.components.written_corpus import Corpus, Text, write_corpus

WORDS = ("liver", "queen", "graph", "harbour", "sonnet", "enzyme")
N_DOCUMENTS = 4


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Chunk i is about word i; its tag is that word, its label the concept of it."""
    texts = [
        Text(f"d{at}", "train", "x", [(f"The {word} and nothing else. ", {place: 1.0})
                                      for place, word in enumerate(WORDS) if place % 4 == at])
        for at in range(N_DOCUMENTS)
    ]  # fmt: skip
    corpus = write_corpus(tmp_path, texts, n_concepts=len(WORDS))
    rows = contracts.read(corpus.concepts, contracts.CONCEPTS).to_pylist()
    for row, word in zip(rows, WORDS, strict=True):
        row |= {"name": word, "members": [word]}
    contracts.write(rows, corpus.concepts, contracts.CONCEPTS)
    chunk_words = [word for at in range(4) for place, word in enumerate(WORDS) if place % 4 == at]
    (tmp_path / "tags").mkdir()
    (tmp_path / "tags" / "sample.json").write_text("{}")
    tags = [
        {"chunk_id": at, "tag": tag, "kind": "content"}
        for at, word in enumerate(chunk_words)
        for tag in (word, "unheard of")
    ]
    contracts.write(tags, tmp_path / "tags", contracts.TAGS)
    return corpus


def judged(corpus: Corpus, name: str, **config: object) -> dict[str, dict[str, float]]:
    folder = corpus.documents.parent / name
    folder.mkdir()
    read = JudgeConfig.model_validate(config)
    tags = corpus.documents.parent / "tags"
    judge(corpus.documents, corpus.chunks, tags, corpus.concepts, corpus.labels, folder, read)
    contracts.verify(folder, contracts.SCORES)
    return json.loads((folder / "scores.json").read_text())


def by_cosine(**changes: object) -> dict[str, object]:
    return {"judge": {"kind": "embedding", "encoder": hashing.NAME}, "n_pairs": 12, **changes}


def test_right_names_stand_above_shuffled_ones_and_say_on_how_many_documents(
    corpus: Corpus,
) -> None:
    found = judged(corpus, "judged", **by_cosine())
    for name in ("concepts", "labels"):
        right, wrong = found[f"judged_{name}"], found[f"judged_{name}_shuffled"]
        assert right["low"] > wrong["high"]
        assert (right["n"], right["n_of"]) == (N_DOCUMENTS, "documents")
        assert found[f"judged_{name}_acceptable"]["value"] == 1.0
        assert found[f"judged_{name}_shuffled_acceptable"]["value"] < 0.5
    assert found["judge_calibration_error"]["n"] >= 500


def test_the_same_inputs_are_judged_to_the_same_bytes_and_a_sample_is_no_larger_than_asked(
    corpus: Corpus,
) -> None:
    for name in ("first", "second"):
        found = judged(corpus, name, **by_cosine(n_pairs=3))
        assert str(found["judged_tags"]["note"]).startswith("3 of 3 pairs")
    first, second = (corpus.documents.parent / name for name in ("first", "second"))
    assert contracts.manifest_of(first) == contracts.manifest_of(second)


def test_a_language_model_judges_on_its_own_scale_and_what_it_cannot_say_is_left_out(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))

    def reply(number: int, body: Body) -> Reply:
        messages = body["messages"]
        assert isinstance(messages, list)
        passage, _, card = messages[-1]["content"].partition("</passage>")
        if "unheard of" in card:
            return 200, "I would rather not."
        word = card.partition(": ")[2].split(":")[0].strip()
        return 200, json.dumps({"reason": "x", "score": 4 if f"The {word} " in passage else 1})

    with serving(reply) as endpoint:
        model = {"kind": "remote", "base_url": endpoint.url, "name": "m"}
        found = judged(
            corpus, "judged", n_pairs=12,
            judge={"kind": "language_model", "language_model": model, "n_retries": 0},
        )  # fmt: skip
    assert (found["judged_tags"]["value"], found["judged_tags"]["unit"]) == (4, "points of 1 to 5")
    assert str(found["judged_tags"]["note"]).startswith("6 of 12 pairs")
    assert found["judged_labels_shuffled"]["value"] == 1
    assert "judge_auc" not in found


def test_a_judge_that_never_answers_stops_the_stage_with_a_way_out(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))
    with serving(lambda number, body: (200, "Well...")) as endpoint:
        model = {"kind": "remote", "base_url": endpoint.url, "name": "m"}
        judge_config = {"kind": "language_model", "language_model": model, "n_retries": 0}
        with pytest.raises(ValueError, match=r"m scored none of 3 pairs of tags.*'embedding'"):
            judged(corpus, "judged", n_pairs=3, judge=judge_config)


def test_a_library_of_one_concept_has_nothing_to_compare_with(corpus: Corpus) -> None:
    labels = [{"chunk_id": at, "concept_id": 0, "score": 1.0} for at in range(len(WORDS))]
    contracts.write(labels, corpus.labels, contracts.LABELS)
    with pytest.raises(ValueError, match=r"nothing to judge of labels_shuffled.*two concepts"):
        judged(corpus, "judged", **by_cosine())


def test_a_shuffled_name_is_never_one_that_the_chunk_carries(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = [{"chunk_id": 0, "concept_id": c, "score": 1.0} for c in range(len(WORDS) - 1)]
    labels.append({"chunk_id": 1, "concept_id": len(WORDS) - 1, "score": 1.0})
    contracts.write(labels, corpus.labels, contracts.LABELS)
    reader = Recording()
    monkeypatch.setattr(judges, "judge_of", lambda config, events: reader)
    judged(corpus, "judged", **by_cosine())
    heard = [pair for pair in reader.heard if pair.kind == "label"]
    assert len(heard) == 2 * len(WORDS)
    right, shuffled = heard[: len(WORDS)], heard[len(WORDS) :]
    first = {pair.name for pair in right if "liver" in pair.passage}
    assert first == {*WORDS[:-1]}
    assert {pair.name for pair in shuffled if "liver" in pair.passage} == {WORDS[-1]}


class Recording:
    """A judge that remembers what it was asked and likes everything."""

    name, unit, acceptable_from, calibration = "recording", "points", 0.5, None

    def __init__(self) -> None:
        self.heard: list[Pair] = []

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        self.heard += pairs
        return [1.0] * len(pairs)
