"""Which chunks are tagged."""

from pathlib import Path

import pytest

from components.atlas import sampling
from components.atlas.sampling import shares
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
