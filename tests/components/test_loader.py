"""The loader: by hand where it mixes, and the same whatever the number of ranks."""

import json

import numpy as np
import pytest
import torch

from components import loader
from components.loader import Loader, LoaderError, Source
from components.tokens import TokenStream
from tests.components.packed import packed
from tests.components.written_corpus import Text

LENGTH = 8
LETTERS = [
    Text("a", "train", "prose", [("abcd", {0: 1.0}), ("efg", {2: 0.4, 1: 0.8}), ("hij", {})]),
    Text("v", "valid", "prose", [("qrs", {1: 1.0})]),
    Text("t", "test", "prose", [("z", {0: 1.0})]),
    *(Text(f"b{i}", "train", "code", [(f"{i}" * 17, {0: 1.0})]) for i in range(7)),
]
NOTES = [
    Text("n", "train", "notes", [("do re mi fa so la", {1: 1.0}), ("ti do!", {})]),
    Text("nv", "valid", "notes", [("re", {1: 1.0})]),
    Text("nt", "test", "notes", [("mi", {0: 1.0})]),
]


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    return TokenStream(packed(tmp_path_factory.mktemp("letters"), LETTERS))


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return TokenStream(packed(tmp_path_factory.mktemp("notes"), NOTES))


def single(stream, seed=1, **share):
    return loader.of_stream(stream, {}, length=LENGTH, batch_sequences=12, seed=seed, **share)


def mixed(letters, notes, seed=5, weights=None, **share):
    sources = [Source("letters", letters), Source("notes", notes)]
    weights = weights or {"letters": 3.0, "notes": 1.0}
    return Loader(sources, weights, length=LENGTH, batch_sequences=12, seed=seed, **share)


def sequences(parts):
    """Of one step: the ids and the chunks' concepts of each sequence, by its sample id."""
    found = {}
    for batch in parts:
        for ids_T, chunk_T, name in zip(
            batch.ids_BT.tolist(), batch.chunk_BT, batch.sample_ids_B.tolist(), strict=True
        ):
            assert name not in found
            concepts_TM = torch.where(
                (chunk_T >= 0)[:, None], batch.concepts_CM[chunk_T.clamp(min=0)], -2
            )
            found[name] = (ids_T, concepts_TM.tolist())
    return found


@pytest.mark.parametrize("world", [2, 3, 4])
def test_ranks_share_a_step_without_overlap_and_leave_nothing_out(letters, notes, world):
    for make in (lambda **share: single(letters, **share), lambda **s: mixed(letters, notes, **s)):
        whole = sequences([make().batch(3)])
        parts = [make(rank=rank, world=world).batch(3) for rank in range(world)]
        assert {len(part) for part in parts} == {12 // world}
        assert sequences(parts) == whole
        assert sorted(whole) == list(range(36, 48))


def test_a_batch_that_ranks_cannot_share_is_refused(letters):
    with pytest.raises(LoaderError, match=r"batch_sequences is 12, which 5 ranks .* try 15"):
        single(letters, world=5)


def test_training_resumes_at_any_step(letters, notes):
    for step in (7, 2):
        expected, found = mixed(letters, notes).batch(step), mixed(letters, notes).batch(step)
        assert sequences([found]) == sequences([expected])


def test_an_epoch_of_steps_reads_every_window_once(letters):
    n = letters.n_windows("train", LENGTH)
    every = letters.batch("train", LENGTH, np.arange(n)).ids_BT.tolist()
    batches = loader.of_stream(letters, {}, length=LENGTH, batch_sequences=n, seed=4)
    first, second = (batches.batch(step).ids_BT.tolist() for step in (0, 1))
    assert sorted(first) == sorted(second) == sorted(every)
    assert first != second


def test_a_mixture_of_domains_reads_windows_of_these_alone(letters):
    prose = letters.windows_by_domain(LENGTH)["prose"]
    allowed = letters.batch("train", LENGTH, prose).ids_BT.tolist()
    batches = loader.of_stream(letters, {"prose": 1.0}, length=LENGTH, batch_sequences=12, seed=0)
    assert all(ids_T in allowed for ids_T in batches.batch(0).ids_BT.tolist())


def test_a_batch_of_two_streams_keeps_every_sequence_with_its_own_chunks(letters, notes):
    batches = mixed(letters, notes)
    drawn = batches.order.at(np.arange(12), seed=5)
    streams = [letters, notes]
    assert set(drawn.source_N.tolist()) == {0, 1}
    expected = [
        streams[k].batch("train", LENGTH, np.array([window]), np.array([place]))
        for place, (k, window) in enumerate(
            zip(drawn.source_N.tolist(), drawn.element_N.tolist(), strict=True)
        )
    ]
    found = batches.batch(0)
    assert found.sample_ids_B.tolist() == list(range(12))
    assert sequences([found]) == sequences(expected)


def test_sources_are_accounted_for_without_counting(letters, notes):
    batches = mixed(letters, notes, weights={"letters": 2.0, "notes": 1.0})
    counted_windows, counted_tokens = np.zeros(2, int), np.zeros(2, int)
    steps = 3 * letters.n_windows("train", LENGTH)
    for step in range(steps):
        drawn = batches.order.at(step * 12 + np.arange(12), seed=5)
        for k, stream in enumerate((letters, notes)):
            for start, end in stream.stretches(
                "train", LENGTH, drawn.element_N[drawn.source_N == k]
            ):
                counted_windows[k] += 1
                counted_tokens[k] += end - start
    said = batches.accounting(steps)
    assert [said[name].n_windows for name in ("letters", "notes")] == counted_windows.tolist()
    assert [said[name].n_tokens for name in ("letters", "notes")] == counted_tokens.tolist()
    n_windows = [stream.n_windows("train", LENGTH) for stream in (letters, notes)]
    assert said["letters"].epochs == counted_windows[0] / n_windows[0]
    assert counted_tokens.sum() < counted_windows.sum() * LENGTH  # a short window did come


def test_the_state_is_small_json_that_a_run_of_other_ranks_goes_on_with(letters, notes):
    state = mixed(letters, notes, rank=1, world=2).state(9)
    text = json.dumps(state)
    assert len(text) < 2_000
    assert state["step"] == 9
    mixed(letters, notes).restore(json.loads(text))


def test_a_state_of_twenty_sources_stays_below_two_kilobytes(letters):
    sources = [Source(f"a-dataset-of-some-name-{i}", letters) for i in range(20)]
    weights = {source.name: 1 / 21 for source in sources}
    batches = Loader(sources, weights, length=LENGTH, batch_sequences=4, seed=0)
    assert len(json.dumps(batches.state(123_456_789))) < 2_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 6}, r"seed is 6 here and 5 in the state"),
        ({"batch_sequences": 24}, r"batch_sequences is 24 here and 12"),
        ({"length": 4}, r"length is 4 here and 8"),
        (
            {"weights": {"letters": 1.0, "notes": 1.0}},
            r"source letters is '\w+, weight 1.0' here and '\w+, weight 3.0'",
        ),
    ],
)
def test_a_state_of_other_batches_is_refused_with_both_values(letters, notes, change, said):
    state = mixed(letters, notes).state(3)
    settings = {"length": LENGTH, "batch_sequences": 12, "seed": 5}
    weights = {"letters": 3.0, "notes": 1.0}
    sources = [Source("letters", letters), Source("notes", notes)]
    other = Loader(sources, **{"weights": weights, **settings, **change})
    with pytest.raises(LoaderError, match=said):
        other.check(state)


def test_a_state_of_other_data_is_refused_with_both_digests(letters, notes):
    state = loader.of_stream(letters, {}, length=LENGTH, batch_sequences=12, seed=1).state(3)
    with pytest.raises(
        LoaderError, match=rf"{notes.digest[:20]}.* here and .*{letters.digest[:20]}"
    ):
        single(notes).check(state)


def test_a_state_that_lacks_something_is_refused(letters):
    state = single(letters).state(3)
    del state["length"]
    with pytest.raises(LoaderError, match="length is 8 here and not given in the state"):
        single(letters).check(state)


def test_several_sources_without_weights_are_refused(letters, notes):
    sources = [Source("letters", letters), Source("notes", notes)]
    with pytest.raises(LoaderError, match=r"2 sources and no weights.*'notes': "):
        Loader(sources, {}, length=LENGTH, batch_sequences=2, seed=0)


def test_sources_of_different_vocabularies_are_refused(letters, tmp_path):
    other = TokenStream(packed(tmp_path, NOTES, vocab_size=265))
    with pytest.raises(LoaderError, match=r"different vocabularies.*given_tokenizer"):
        mixed(letters, other)
