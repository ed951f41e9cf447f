"""Labelling: the same labels however it is cut and done, and only what is missing is done again."""

import functools
import json
import operator
import shutil
from pathlib import Path

import numpy as np
import pytest

from components import annotators, contracts, embedding, engines
from components.annotators import Annotator, Calibration, Linear
from components.atlas.labelling import annotate
from components.atlas.labelling_config import AnnotateConfig
from components.chunks import ChunkTexts
from components.engine_config import EngineConfig
from components.engines import EngineError
from tests.components.written_chunks import N, write_chunks

ALONE = EngineConfig(n_workers=1)
IN_ONE = AnnotateConfig(batch_chunks=4, shard_chunks=24, engine=ALONE)
IN_SIX = AnnotateConfig(batch_chunks=4, shard_chunks=4, engine=ALONE)


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    return write_chunks(tmp_path)


def labelled(given: dict[str, Path], folder: Path, config: AnnotateConfig, **more: object) -> Path:
    folder.mkdir()
    annotate(*given.values(), folder, config, **more)
    return folder


def test_several_parts_hold_the_rows_that_one_would(given, tmp_path):
    one = labelled(given, tmp_path / "one", IN_ONE)
    six = labelled(given, tmp_path / "six", IN_SIX)
    assert len(list(six.glob("rows*.parquet"))) == 6
    found = contracts.read(six, contracts.LABELS)
    assert found.equals(contracts.read(one, contracts.LABELS))
    assert found.num_rows == contracts.manifest_of(six).rows
    streamed = [batch["chunk_id"] for batch in contracts.stream(six, contracts.LABELS, rows=100)]
    assert functools.reduce(operator.add, streamed) == found.column("chunk_id").to_pylist()


def test_labels_say_of_which_library_and_annotator_they_are(given, tmp_path):
    labels = labelled(given, tmp_path / "labels", IN_ONE)
    assert contracts.json_file(labels, "labels.json") == {
        "library_digest": "l1",
        "annotator_digest": contracts.manifest_of(given["annotator"]).digest,
        "n_chunks": N,
    }


def test_shards_that_were_finished_are_kept_and_damaged_ones_made_again(given, tmp_path):
    whole = contracts.manifest_of(labelled(given, tmp_path / "whole", IN_SIX))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    labelled(given, tmp_path / "first", IN_SIX, scratch=scratch)
    shards = scratch / "shards"
    before = (shards / "rows-000001.parquet").stat().st_mtime_ns
    (shards / "rows-000002.parquet").write_bytes(b"torn")
    (shards / "rows-000003.json").unlink()
    told = []
    again = labelled(given, tmp_path / "again", IN_SIX, events=told.append, scratch=scratch)
    assert (shards / "rows-000001.parquet").stat().st_mtime_ns == before
    assert told[0].message == "goes on with 2 of 6 shards; 15 of 23 chunks were labelled before"
    assert [event.step for event in told] == [15, 19, 23]
    assert contracts.manifest_of(again) == whole


def test_rate_and_cost_are_told(given, tmp_path):
    told = []
    priced = IN_SIX.model_copy(update={"engine": EngineConfig(n_workers=1, price_per_hour=3600.0)})
    labelled(given, tmp_path / "labels", priced, events=told.append)
    assert [event.step for event in told] == [4, 8, 12, 16, 20, 23]
    third = told[2].metrics
    seconds = 12 / third["chunks_per_second"]
    np.testing.assert_allclose(third["cost"], seconds)
    np.testing.assert_allclose(third["cost_at_end"], seconds * 23 / 12)


def test_vectors_of_another_encoder_are_refused(given, tmp_path):
    (given["vectors"] / "encoder.json").write_text(json.dumps({"name": "x", "digest": "other"}))
    contracts.seal(given["vectors"], contracts.VECTORS, rows=N)
    with pytest.raises(contracts.ContractError, match=r"those of other.*rerun --from learn"):
        labelled(given, tmp_path / "labels", IN_ONE)


def test_texts_of_a_stretch_of_chunks_may_lie_in_several_documents(given):
    texts = ChunkTexts(given["documents"], given["chunks"])
    assert texts.between(18, 22) == ["chunk 18.", "chunk 19.", "one ", "two "]
    assert texts.between(5, 5) == []


def test_a_fine_tuned_encoder_reads_the_texts_itself(given, tmp_path, monkeypatch):
    class Lengths:
        """A text's length, and one."""

        def embed(self, texts):
            return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    shutil.rmtree(given["annotator"])
    (given["annotator"] / "encoder").mkdir(parents=True)
    (given["annotator"] / "encoder" / "weights").write_text("of an encoder")
    # Concept 0 scores the length less eight and a half, concept 1 the opposite.
    scorer = Linear(np.array([[1, -8.5], [-1, 8.5]], np.float32), np.zeros(2, np.float32))
    calibration = Calibration(np.zeros(2, np.float32), np.ones(2, np.float32))
    facts = {"encoder": "e", "encoder_digest": "not that of the vectors", "library_digest": "l1"}
    annotators.save(Annotator(scorer, calibration, 1), given["annotator"], "trained", facts)
    loaded = []
    monkeypatch.setattr(embedding, "load", lambda name, n_workers: loaded.append(name) or Lengths())
    labels = labelled(given, tmp_path / "labels", IN_SIX)
    found = contracts.read(labels, contracts.LABELS).column("concept_id").to_pylist()
    assert found == [0] * 20 + [1] * 3  # "chunk 00." has nine letters, "one " four
    assert loaded == [str(given["annotator"] / "encoder")]


def test_shards_that_cut_batches_are_refused():
    with pytest.raises(ValueError, match=r"shard_chunks is 10, no multiple of .* 4; try 8"):
        AnnotateConfig(batch_chunks=4, shard_chunks=10)


def test_an_engine_that_is_not_installed_is_refused_before_any_work(given, tmp_path, monkeypatch):
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None)
    on_ray = IN_SIX.model_copy(update={"engine": EngineConfig(name="ray")})
    with pytest.raises(EngineError, match=r"not installed: pip install -r requirements-ray"):
        labelled(given, tmp_path / "labels", on_ray)
    assert not list((tmp_path / "labels").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 3])
def test_any_number_of_workers_writes_the_same_bytes(n_workers, given, tmp_path):
    engine = EngineConfig(n_workers=n_workers)
    side_by_side = IN_SIX.model_copy(update={"engine": engine})
    one = labelled(given, tmp_path / "one", IN_SIX)
    several = labelled(given, tmp_path / "several", side_by_side)
    assert contracts.manifest_of(one) == contracts.manifest_of(several)
