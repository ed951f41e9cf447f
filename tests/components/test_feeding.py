"""What a job reads: from S3 as from the folder, and by weight from packed and streamed sources."""

import json
import os
import shutil
import signal
import threading
from multiprocessing import get_context

import pytest
import torch

from components import contracts, savepoints, store
from components.contracts import ContractError
from components.data_config import DataConfig, PackedSource, StreamedSource
from components.keeper import ScratchKeeper
from components.loader import LoaderError, joined
from components.tokens import TokenStream
from model.engine import PlainEngine
from model.language_model import LanguageModel
from model.train import fit
from tests.components import fed_job
from tests.components.fed_job import N_STEPS, SEQUENCES, by_sample, fed
from tests.components.folder_bucket import FolderBucket
from tests.components.interrupted import Moment

MIXED = {"own": 2.0, "tales": 3.0}
BUCKET = "corpus"


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return fed_job.write_tokens(tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return fed_job.write_dataset(tmp_path_factory.mktemp("dataset") / "tales", "xyz")


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")


@pytest.fixture
def buckets(tokens, monkeypatch):
    """Every bucket that was opened; the one called `corpus` holds the tokens as `tokens`."""
    opened = []

    class Bucket(FolderBucket):
        root = tokens.parent.parent

        def __init__(self, bucket, storage):
            super().__init__(bucket, storage)
            self.folder = tokens.parent
            opened.append(self)

    monkeypatch.setattr(store, "S3Bucket", Bucket)
    return opened


def mixture(dataset, **changes):
    sources = {"own": PackedSource(), "tales": StreamedSource(path=str(dataset))}
    return DataConfig(**{"sources": sources, "weights": MIXED, "lanes": 2, **changes})


def trained(job):
    """Losses of every step, and the weights."""
    engine = PlainEngine(LanguageModel(job.network, seed=1), job.training)
    with fed(job) as batches:
        history = fit(engine, job.training, batches.batch, [])
    losses = [row.nll_nats for row in history.rows]
    return losses, torch.cat([p.detach().flatten() for p in engine.finished().parameters()])


def test_a_job_fed_from_s3_has_the_losses_and_weights_of_one_fed_from_the_folder(
    tokens, buckets, tmp_path
):
    remote = DataConfig(location=f"s3://{BUCKET}/tokens")
    here, there = (
        trained(fed_job.job(tokens, tmp_path / name, data))
        for name, data in (("here", DataConfig()), ("there", remote))
    )
    assert there[0] == here[0]
    assert torch.equal(there[1], here[1])
    (bucket,) = buckets
    assert not any(key.endswith("rows.parquet") for key, _, _ in bucket.read)
    assert len(bucket.read) == len(set(bucket.read))  # a second epoch's come from memory
    assert bucket.is_closed
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_a_batch_from_s3_asks_for_its_ranges_and_never_for_a_whole_body(tokens, buckets, tmp_path):
    data = DataConfig(
        location=f"s3://{BUCKET}/tokens", ahead=0, recent_bytes=0, storage={"coalesce_bytes": 0}
    )
    with fed(fed_job.job(tokens, tmp_path / "job", data)) as batches:
        for step in range(N_STEPS):
            batches.batch(step)  # headers of the shards are read at the first touch
        buckets[0].read.clear()
        batches.batch(2)
    of_stream = [n for key, _, n in buckets[0].read if key.endswith("stream.npy")]
    assert sum(of_stream) == SEQUENCES * fed_job.LENGTH * 2  # two bytes a token


def test_another_artifact_at_the_location_is_refused_with_both_digests(tokens, buckets, tmp_path):
    other = fed_job.write_tokens(tmp_path / "other", shard_tokens=50)
    job = fed_job.job(other, tmp_path / "job", DataConfig(location=f"s3://{BUCKET}/tokens"))
    here, there = (TokenStream(folder).digest[:12] for folder in (other, tokens))
    said = rf"s3://corpus/tokens holds .* {there}…, but this run is to read {here}…"
    with pytest.raises(ContractError, match=said), fed(job):
        pass


def test_a_manifest_that_says_s3_is_read_there(tokens, buckets, tmp_path):
    manifest = contracts.manifest_of(tokens).model_copy(
        update={"location": f"s3://{BUCKET}/tokens"}
    )
    face = tmp_path / "face"
    face.mkdir()
    (face / "manifest.json").write_text(manifest.model_dump_json())
    job = fed_job.job(tokens, tmp_path / "job", DataConfig())
    with fed(job) as here, fed(job.model_copy(update={"tokens": str(face)})) as there:
        assert by_sample([here.batch(2)]) == by_sample([there.batch(2)])
    assert len(buckets) == 1


def test_a_mixture_gives_every_source_its_share_and_says_exactly_what(tokens, dataset, tmp_path):
    job = fed_job.job(tokens, tmp_path / "job", mixture(dataset))
    stream = TokenStream(tokens)
    n_windows = stream.n_windows("train", fed_job.LENGTH)
    ends = [
        end - start for start, end in stream.stretches("train", fed_job.LENGTH, range(n_windows))
    ]
    windows = {
        tuple(ids): n_tokens
        for ids, n_tokens in zip(
            stream.batch("train", fed_job.LENGTH, range(n_windows)).ids_BT.tolist(),
            ends,
            strict=True,
        )
    }
    n_steps = 40
    with fed(job.model_copy(update={"training": longer(job, n_steps)})) as batches:
        found = [batches.batch(step) for step in range(n_steps)]
        given = batches.accounting(n_steps)
        later = batches.accounting(500)
    drawn = [tuple(ids) for batch in found for ids in batch.ids_BT.tolist()]
    own = [ids for ids in drawn if ids in windows]
    assert given["own"].n_windows == len(own)
    assert given["own"].n_tokens == sum(windows[ids] for ids in own)
    assert given["own"].epochs == len(own) / n_windows
    assert given["own"].n_tokens < len(own) * fed_job.LENGTH  # a short window did come
    assert given["tales"].n_windows == len(drawn) - len(own)
    assert given["tales"].n_tokens == given["tales"].n_windows * fed_job.LENGTH
    assert [later[name].n_windows for name in MIXED] == [800, 1200]
    n_labelled = sum(int((batch.chunk_BT >= 0).any(1).sum()) for batch in found)
    assert n_labelled == len(own)  # streams have no chunks; packed windows keep theirs


def longer(job, n_steps):
    n_tokens = n_steps * job.training.tokens_per_step
    return job.training.model_copy(update={"n_tokens": n_tokens, "seed": 4})


def test_two_ranks_share_a_mixture_and_one_goes_on_from_their_joined_state(
    tokens, dataset, tmp_path
):
    job = fed_job.job(tokens, tmp_path / "job", mixture(dataset))
    with fed(job) as alone:
        expected = [by_sample([alone.batch(step)]) for step in range(N_STEPS)]
    with fed(job, rank=0, world=2) as one, fed(job, rank=1, world=2) as other:
        for step in range(3):
            assert by_sample([one.batch(step), other.batch(step)]) == expected[step]
        state = joined([other.state(3), one.state(3)])
    with fed(job) as alone:
        alone.restore(json.loads(json.dumps(state)))
        assert [by_sample([alone.batch(step)]) for step in (3, 4)] == expected[3:5]


def train_with_savepoints(job, folder, moment=None):
    """As `components.rank` does it, in a forked process: what a kill leaves is what it leaves."""

    def work():
        if moment is not None:
            moment.arm()
        engine = PlainEngine(LanguageModel(job.network, seed=1), job.training)
        found = savepoints.newest(folder / "scratch", job.topology(1))
        with fed(job) as batches, (folder / "samples.txt").open("a") as taken:
            if found is not None:
                batches.restore(found.savepoint.state.loader)

            def batch_at(step):
                batch = batches.batch(step)
                taken.write(json.dumps([step, sorted(by_sample([batch]).items())]) + "\n")
                taken.flush()
                return batch

            keeper = ScratchKeeper(
                folder / "scratch", engine, job.training.saving, found and found.savepoint,
                batches.state, lambda standing, loaders: job.state(standing, 1, loaders),
                lambda event: None,
            )  # fmt: skip
            history = fit(engine, job.training, batch_at, [], keeper=keeper)
            keeper.close()
        losses = [row.nll_nats for row in history.rows]
        (folder / "losses.json").write_text(json.dumps(losses))
        os._exit(0)  # threads of the parent are not here to be waited for

    folder.mkdir(exist_ok=True)
    child = get_context("fork").Process(target=work)
    child.start()
    child.join()
    return child.exitcode


def test_a_killed_mixture_goes_on_with_the_sample_ids_and_tokens_it_would_have_seen(
    tokens, dataset, tmp_path
):
    straight, killed = (
        fed_job.job(tokens, tmp_path / name, mixture(dataset)) for name in ("straight", "killed")
    )
    assert train_with_savepoints(straight, tmp_path / "one") == 0
    moment = Moment("model.engine", "PlainEngine.step", 6)
    assert train_with_savepoints(killed, tmp_path / "two", moment) == -signal.SIGKILL
    state = savepoints.listed(tmp_path / "two" / "scratch")[0].state
    assert state.standing.step == state.loader["step"] == 4  # though steps up to 7 were read
    assert train_with_savepoints(killed, tmp_path / "two") == 0
    once, twice = (
        [json.loads(line) for line in (tmp_path / name / "samples.txt").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert [step for step, _ in twice] == [0, 1, 2, 3, 4, 5, 4, 5, 6]
    assert twice[:4] + twice[6:] == once
    assert (tmp_path / "one/losses.json").read_text() == (tmp_path / "two/losses.json").read_text()


def test_a_source_is_named_where_it_cannot_be_read(tokens, dataset, tmp_path):
    def first_batch(source):
        data = mixture(dataset, sources={"own": PackedSource(), "tales": source})
        with fed(fed_job.job(tokens, tmp_path / "job", data)) as batches:
            batches.batch(0)

    with pytest.raises(
        LoaderError, match=r"source 'tales' has no text in column 'body'; its .*tex"
    ):
        first_batch(StreamedSource(path=str(dataset), text_column="body"))
    with pytest.raises(LoaderError, match=r"source 'tales' cannot be opened: .*nowhere"):
        first_batch(StreamedSource(path=str(tmp_path / "nowhere")))
    with pytest.raises(LoaderError, match=r"source 'tales' cannot be opened: .*split='dev'"):
        first_batch(StreamedSource(path=str(dataset), split="dev"))


def test_a_packed_source_of_another_vocabulary_is_refused(tokens, tmp_path):
    other = fed_job.packed(tmp_path / "other", fed_job.TEXTS, vocab_size=266)
    digest = contracts.manifest_of(other).digest
    data = DataConfig(
        sources={"own": PackedSource(), "more": PackedSource(location=str(other), digest=digest)},
        weights={"own": 1.0, "more": 1.0},
    )
    with (
        pytest.raises(LoaderError, match="different vocabularies"),
        fed(fed_job.job(tokens, tmp_path / "job", data)),
    ):
        pass


def test_a_packed_source_with_the_labels_of_another_library_is_refused(tokens, tmp_path):
    other = shutil.copytree(tokens, tmp_path / "other")
    facts = {**contracts.json_file(other, "tokens.json"), "library_digest": "another"}
    (other / "tokens.json").write_text(json.dumps(facts))
    digest = contracts.seal(other, contracts.TOKENS, contracts.manifest_of(tokens).rows).digest
    source = PackedSource(location=str(other), digest=digest)
    data = DataConfig(sources={"more": source}, weights={"more": 1.0})
    ours = TokenStream(tokens).library_digest[:12]
    said = f"source 'more' is labelled with the library another…, the stage's tokens with {ours}…"
    with (
        pytest.raises(LoaderError, match=said),
        fed(fed_job.job(tokens, tmp_path / "job", data)),
    ):
        pass


def test_a_savepoint_of_another_mixture_is_refused_with_both_weights(tokens, dataset, tmp_path):
    first, second = (
        fed_job.job(tokens, tmp_path / "job", mixture(dataset, weights={**MIXED, "own": own}))
        for own in (2.0, 5.0)
    )
    assert first.computes != second.computes
    said = r"source own is .*5\.0.* here and .*2\.0"
    with fed(first) as one, fed(second) as other, pytest.raises(LoaderError, match=said):
        other.restore(one.state(0))


def test_how_a_job_reads_is_no_part_of_what_it_computes(tokens, tmp_path):
    data = DataConfig(ahead=5, recent_bytes=7, location="s3://corpus/tokens")
    one, other = (fed_job.job(tokens, tmp_path / "job", config) for config in (DataConfig(), data))
    assert one.computes == other.computes
