"""Which chunks are tagged."""

from pathlib import Path

import numpy as np
import pytest

from components import contracts
from components.atlas import sampling
from components.atlas.sampling import Passage, Sample, shares
from components.chunks import ChunkTexts, texts
from tests.components.written_corpus import Corpus, Text, write_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    texts = [
        Text(f"{split}-{domain}", split, domain, [(f"{domain} {at}. ", {}) for at in range(n)])
        for split, n in (("train", 20), ("valid", 6), ("test", 5))
        for domain in ("law", "code")
    ]
    texts.append(Text("few", "train", "verse", [("a single verse.", {})]))
    return write_corpus(tmp_path, texts, n_concepts=1)


@pytest.fixture(autouse=True)
def any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "FEWEST_WORDPIECES", 1)


def test_the_sample_covers_every_domain_and_never_the_test_split(corpus: Corpus) -> None:
    sample = sampling.draw(corpus.documents, corpus.chunks, n_train=9, n_held_out=4, seed=3)
    assert (len(sample.train), len(sample.held_out)) == (9, 4)
    assert {passage.text.split()[0] for passage in sample.train} == {"law", "code", "a"}
    ids = [passage.chunk_id for passage in sample.passages]
    assert ids == sorted(set(ids))
    train, valid = range(40), range(40, 52)
    assert all(passage.chunk_id in valid for passage in sample.held_out)
    assert all(p.chunk_id in train or p.text.startswith("a single") for p in sample.train)


def test_the_same_seed_draws_the_same_chunks_and_another_seed_others(corpus: Corpus) -> None:
    first, again, other = (
        sampling.draw(corpus.documents, corpus.chunks, n_train=9, n_held_out=4, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_further_chunks_are_of_the_training_split_and_leave_the_sample_as_it_is(
    corpus: Corpus,
) -> None:
    alone, some, all_there_are = (
        sampling.draw(corpus.documents, corpus.chunks, 9, 4, seed=3, n_further=n)
        for n in (0, 7, 99)
    )
    assert alone.passages == some.passages == all_there_are.passages
    assert [len(sample.further) for sample in (alone, some, all_there_are)] == [0, 7, 32]
    assert {passage.text.split()[0] for passage in some.further} == {"law", "code"}
    ids = {passage.chunk_id for passage in [*all_there_are.train, *all_there_are.further]}
    held_out = {passage.chunk_id for passage in all_there_are.held_out}
    assert len(ids) == 41
    assert not ids & held_out


@pytest.mark.parametrize(
    ("n_train", "n_held_out", "seed", "n_further"), [(9, 4, 3, 5), (30, 11, 4, 99), (2, 0, 5, 0)]
)
def test_the_sample_is_the_one_drawn_with_all_passages_in_memory(
    n_train: int, n_held_out: int, seed: int, n_further: int, corpus: Corpus
) -> None:
    strata: dict[str, dict[tuple[str, str], list[Passage]]] = {"train": {}, "valid": {}, "test": {}}
    for batch in texts(corpus.documents, corpus.chunks, rows=7):
        columns = ("split", "source", "domain", "chunk_id", "text")
        for split, *name, chunk_id, text in zip(*(batch[each] for each in columns), strict=True):
            strata[split].setdefault(tuple(name), []).append(Passage(chunk_id, text))
    rng = np.random.default_rng(seed)

    def drawn(split: str, n: int, n_more: int) -> tuple[list[Passage], list[Passage]]:
        found, more = [], []
        all_of = [strata[split][name] for name in sorted(strata[split])]
        sizes = [len(passages) for passages in all_of]
        for passages, first, last in zip(
            all_of, shares(sizes, n), shares(sizes, n + n_more), strict=True
        ):
            rows = rng.permutation(len(passages)).tolist()
            found += [passages[row] for row in sorted(rows[:first])]
            more += [passages[row] for row in rows[first:last]]
        return found, sorted(more, key=lambda passage: passage.chunk_id)

    train, further = drawn("train", n_train, n_further)
    held_out, _ = drawn("valid", n_held_out, 0)
    sample = sampling.draw(
        corpus.documents, corpus.chunks, n_train, n_held_out, seed=seed, n_further=n_further
    )
    assert sample == Sample(train, held_out, further)


def test_no_text_is_read_but_that_of_the_sample(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, asked, read, at = [], [], contracts.read, ChunkTexts.at
    monkeypatch.setattr(contracts, "read", lambda *a: columns.append(a[2]) or read(*a))
    monkeypatch.setattr(ChunkTexts, "at", lambda self, ids: asked.append(ids) or at(self, ids))
    sample = sampling.draw(corpus.documents, corpus.chunks, n_train=5, n_held_out=2, seed=0)
    assert columns == [("doc_id", "split", "source", "domain")]
    assert [sorted(ids) for ids in asked] == [[each.chunk_id for each in sample.passages]]


def test_a_corpus_smaller_than_the_sample_is_tagged_whole(corpus: Corpus) -> None:
    sample = sampling.draw(corpus.documents, corpus.chunks, n_train=999, n_held_out=999, seed=0)
    assert (len(sample.train), len(sample.held_out)) == (41, 12)


@pytest.mark.parametrize(
    ("available", "n", "expected"),
    [
        ([60, 30, 10], 10, [6, 3, 1]),
        ([97, 2, 1], 10, [8, 1, 1]),
        ([5, 5, 5], 4, [2, 1, 1]),
        ([1, 1, 50], 52, [1, 1, 50]),
        ([3, 3], 100, [3, 3]),
        ([9, 9], 0, [0, 0]),
    ],
)
def test_shares_are_proportional_with_one_each(
    available: list[int], n: int, expected: list[int]
) -> None:
    assert shares(available, n) == expected
