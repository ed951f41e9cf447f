"""Streamed datasets: resumed exactly, and the same for any ranks that divide the lanes."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.data_config import StreamedSource
from components.loader import LoaderError, joined
from components.streaming import streamed
from model.tokenizer import train

LENGTH, SEQUENCES = 16, 4
DOCUMENTS = [[f"{name}{i} " * (1 + (7 * i) % 23) for i in range(11)] for name in "abcd"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return train([], 264, tmp_path_factory.mktemp("tokenizer") / "tokenizer.json")


@pytest.fixture(scope="module", params=["json", "parquet"])
def config(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    files = []
    for number, texts in enumerate(DOCUMENTS):
        path = folder / f"{number}.{request.param}"
        if request.param == "json":
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        else:
            pq.write_table(pa.table({"text": texts}), path, row_group_size=3)
        files.append(str(path))
    return StreamedSource(path=request.param, data_files=tuple(files))


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)


def opened(config, tokenizer, **changes):
    settings = {"lanes": 2, "length": LENGTH, "batch_sequences": SEQUENCES, "seed": 3, **changes}
    return streamed({"letters": config}, {"letters": 1.0}, tokenizer, **settings)


def mixed(config, tokenizer, **share):
    sources = {
        f"{first}-{last}": config.model_copy(update={"data_files": config.data_files[first:last]})
        for first, last in ((0, 2), (2, 4))
    }
    return streamed(
        sources, {"0-2": 3.0, "2-4": 1.0}, tokenizer,
        lanes=2, length=LENGTH, batch_sequences=SEQUENCES, seed=3, **share,
    )  # fmt: skip


def windows_of(batches, n_steps):
    return {name: given.n_windows for name, given in batches.accounting(n_steps).items()}


def by_name(parts):
    return {
        name: ids
        for part in parts
        for name, ids in zip(part.sample_ids_B.tolist(), part.ids_BT.tolist(), strict=True)
    }


def test_lanes_hold_the_documents_in_order_and_none_twice(config, tokenizer):
    specials = tokenizer.specials
    batches = opened(config, tokenizer)
    steps = [batches.batch(step) for step in range(80)]
    for lane in (0, 1):
        ids = np.concatenate([step.ids_BT[step.sample_ids_B % 2 == lane].numpy() for step in steps])
        texts = [*DOCUMENTS[lane], *DOCUMENTS[lane + 2]]
        epoch = [
            token
            for text in texts
            for token in (specials.bos_id, *tokenizer.encode(text), specials.eos_id)
        ]
        n_tokens = ids.size
        assert n_tokens > len(epoch)  # it begins again
        assert ids.ravel().tolist() == (epoch * 4)[:n_tokens]
    assert batches.epochs()["letters"] >= 1


@pytest.mark.parametrize("stop", [0, 1, 5, 46])
@pytest.mark.parametrize("make", [opened, mixed])
def test_a_stream_resumed_twice_is_the_uninterrupted_one(config, tokenizer, stop, make):
    whole = make(config, tokenizer)
    expected = [whole.batch(step).ids_BT.tolist() for step in range(stop + 6)]
    first = make(config, tokenizer)
    for step in range(stop):
        first.batch(step)
    found = []
    for step in range(stop, stop + 6, 3):
        text = json.dumps(first.state(step))
        assert len(text) < 4_000  # two lanes of one source or two
        first = make(config, tokenizer)
        first.restore(json.loads(text))
        found += [first.batch(step + i).ids_BT.tolist() for i in range(3)]
    assert found == expected[stop:]


@pytest.mark.parametrize("make", [opened, mixed])
def test_ranks_share_the_lanes_and_a_run_goes_on_with_fewer_or_more(config, tokenizer, make):
    whole = make(config, tokenizer)
    expected = [by_name([whole.batch(step)]) for step in range(6)]
    ranks = [make(config, tokenizer, rank=rank, world=2) for rank in (0, 1)]
    for step in range(3):
        assert by_name([rank.batch(step) for rank in ranks]) == expected[step]
    state = joined([rank.state(3) for rank in ranks])
    alone = make(config, tokenizer)
    alone.restore(state)
    assert by_name([alone.batch(3)]) == expected[3]
    again = [make(config, tokenizer, rank=rank, world=2) for rank in (0, 1)]
    for rank in again:
        rank.restore(alone.state(4))
    assert by_name([rank.batch(4) for rank in again]) == expected[4]


def test_one_rank_s_state_does_not_do_for_all_lanes(config, tokenizer):
    state = opened(config, tokenizer, rank=1, world=2).state(0)
    with pytest.raises(LoaderError, match=r"reads lanes \[0, 1\], but the state has only \['1'\]"):
        opened(config, tokenizer).restore(state)


def test_a_state_of_another_dataset_is_refused_with_both(config, tokenizer):
    state = opened(config, tokenizer).state(0)
    fewer = config.model_copy(update={"data_files": config.data_files[:2]})
    with pytest.raises(LoaderError, match=r"source letters is .* here and .* in the state"):
        opened(fewer, tokenizer).check(state)


def test_a_step_out_of_order_is_refused(config, tokenizer):
    with pytest.raises(LoaderError, match=r"step 3 was asked for.* at step 0"):
        opened(config, tokenizer).batch(3)


def test_a_column_that_is_not_there_is_refused_with_those_that_are(config, tokenizer):
    other = config.model_copy(update={"text_column": "body"})
    with pytest.raises(LoaderError, match=r"'body'; its columns are \['text'\]"):
        opened(other, tokenizer).batch(0)


def test_lanes_that_ranks_cannot_share_are_refused(config, tokenizer):
    with pytest.raises(LoaderError, match=r"2 lanes cannot be shared by 3 ranks.*try lanes=3 and"):
        opened(config, tokenizer, rank=0, world=3)


def test_sources_come_by_their_weights_and_are_accounted_for(config, tokenizer):
    batches = mixed(config, tokenizer)
    found = {"0-2": 0, "2-4": 0}
    n_steps = 30
    for step in range(n_steps):
        for ids in batches.batch(step).ids_BT.tolist():
            text = tokenizer.decode(ids)
            found["0-2" if set(text) & set("ab") else "2-4"] += 1
    assert found == windows_of(batches, n_steps)
    assert windows_of(batches, 1_000) == {"0-2": 3_000, "2-4": 1_000}


def test_a_source_without_a_weight_is_refused(config, tokenizer):
    with pytest.raises(LoaderError, match=r"sources are \['a', 'b'\], .* given for \['a'\]"):
        streamed(
            {"a": config, "b": config}, {"a": 1.0}, tokenizer,
            lanes=1, length=LENGTH, batch_sequences=1, seed=0,
        )  # fmt: skip
