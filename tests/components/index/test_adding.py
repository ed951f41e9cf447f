"""Text that comes later is found beside what was there; a text is one row wherever it stands."""

import json
from pathlib import Path

import numpy as np
import pytest

from components import contracts, retrieval
from components.contracts import ContractError
from components.hashing import HashingEmbedder
from components.index.__main__ import main
from components.index.config import BuildConfig
from components.index.rows import collapsed
from components.index.stage import build
from components.nearest_config import LayoutConfig
from tests.components.explained_run import Run, write_run
from tests.components.written_corpus import Corpus, Text, write_corpus

CONFIG = BuildConfig(
    length=64, n_fitted=30, n_held_back=4, n_held_out=3, hidden_width=8, n_steps=2, batch_pairs=8,
    batch_sequences=4, n_verbatim=3, bootstrap_draws=5, layout=LayoutConfig(recall_queries=4),
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def index(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    corpus = run.corpus
    build(run.checkpoint, run.tokens, corpus.documents, corpus.chunks, run.vectors, folder, CONFIG)
    return folder


def some_corpus(folder: Path, known: str) -> Corpus:
    """A text that the index has, with other white space; a new one, twice; a held-out one."""
    texts = [
        Text("n1", "train", "notes", [(f"{known.strip()}  \n", {}), ("a new thing. ", {})]),
        Text("n2", "train", "notes", [("a  new thing.", {})]),
        Text("n3", "test", "notes", [("never indexed", {})]),
    ]
    return write_corpus(folder, texts, n_concepts=2)


def vectors_of(folder: Path, corpus: Corpus, digest: str = HashingEmbedder.digest) -> Path:
    folder.mkdir()
    documents = contracts.read(corpus.documents, contracts.DOCUMENTS).to_pylist()
    text_of = {row["doc_id"]: row["text"] for row in documents}
    chunks = contracts.read(corpus.chunks, contracts.CHUNKS).to_pylist()
    texts = [text_of[row["doc_id"]][row["start"] : row["end"]] for row in chunks]
    np.save(folder / "vectors.npy", HashingEmbedder().embed(texts).astype(np.float16))
    facts = {"name": "hashing", "digest": digest, "dim": 512, "max_wordpieces": 256}
    (folder / "encoder.json").write_text(json.dumps(facts))
    contracts.seal(folder, contracts.VECTORS, rows=len(chunks))
    return folder


def arguments(index: Path, corpus: Corpus, vectors: Path, out: Path) -> list[str]:
    folders = {
        "index": index, "documents": corpus.documents, "chunks": corpus.chunks, "vectors": vectors,
        "out": out,
    }  # fmt: skip
    return [word for name, folder in folders.items() for word in (f"--{name}", str(folder))]


def test_a_text_that_stands_twice_is_one_row_that_names_both_places(tmp_path: Path) -> None:
    corpus = some_corpus(tmp_path, "known words")
    known, new = collapsed(corpus.documents, corpus.chunks).rows()
    assert (known["n_places"], new["n_places"]) == (1, 2)
    assert (new["doc_id"], [place["doc_id"] for place in new["places"]]) == ("n1", ["n1", "n2"])  # type: ignore[attr-defined]


def test_added_chunks_are_found_and_known_ones_gain_a_place(
    run: Run, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = contracts.read(index, contracts.INDEX).to_pylist()
    corpus = some_corpus(tmp_path / "corpus", rows[5]["text"])
    vectors, out = vectors_of(tmp_path / "vectors", corpus), tmp_path / "larger"
    assert main(arguments(index, corpus, vectors, out)) == 0
    assert capsys.readouterr().out == f"{out}: {len(rows) + 1} rows\n"

    retriever = retrieval.open_index(out, run.checkpoint)
    assert (retriever.facts.n, retriever.facts.n_measured) == (len(rows) + 1, len(rows))
    ((new,), (known,)) = retriever.find_text(["a new thing.", rows[5]["text"]], k=1)
    assert (new.doc_id, new.n_places, new.text) == ("n1", 2, "a new thing. ")
    assert (known.text, known.places[-1].doc_id) == (rows[5]["text"], "n1")
    chunk_ids = [place.chunk_id for place in (*new.places, known.places[-1])]
    assert min(chunk_ids) > max(place["chunk_id"] for row in rows for place in row["places"])


def test_vectors_of_another_encoder_are_not_added(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = some_corpus(tmp_path / "corpus", "words")
    vectors = vectors_of(tmp_path / "vectors", corpus, digest="other weights")
    assert main(arguments(index, corpus, vectors, tmp_path / "out")) == 1
    assert "their vectors cannot be compared. Embed the new" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("vectors", "out", "said"),
    [("none", "out", "none is not an artifact"), ("none", "file/out", "cannot be made (Not a dir")],
)
def test_what_is_not_there_is_said_in_one_line_and_leaves_nothing(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    vectors: str, out: str, said: str,
) -> None:  # fmt: skip
    corpus = some_corpus(tmp_path / "corpus", "words")
    (tmp_path / "file").write_text("")
    assert main(arguments(index, corpus, tmp_path / vectors, tmp_path / out)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (tmp_path / "out").exists()


def test_broken_files_are_refused_with_the_stage_to_run_again(
    run: Run, index: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in index.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    (broken / "index.faiss").write_bytes(b"IxFI and then nothing")
    with pytest.raises(ContractError, match=r"index.faiss has 21 bytes.*rerun --from build"):
        retrieval.open_index(broken, run.checkpoint)
    contracts.seal(broken, contracts.INDEX, rows=72)  # as if a stage had left it so
    with pytest.raises(ContractError, match=r"cannot be read as an index.*rerun --from build"):
        retrieval.open_index(broken, run.checkpoint)


def test_an_exchanged_transducer_is_refused(run: Run, index: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in index.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    with (other / "transducer.safetensors").open("ab") as handle:
        handle.write(b" ")
    contracts.seal(other, contracts.INDEX, rows=72)
    with pytest.raises(ContractError, match="was measured with the transducer"):
        retrieval.open_index(other, run.checkpoint)


def test_more_sources_than_rows_are_all_rows(run: Run, index: Path) -> None:
    (found,) = retrieval.open_index(index, run.checkpoint).find_text(["rain"], k=500)
    assert len(found) == 72


def test_a_corpus_without_training_text_is_refused(tmp_path: Path) -> None:
    text = Text("n3", "test", "notes", [("never indexed", {})])
    corpus = write_corpus(tmp_path, [text], n_concepts=2)
    with pytest.raises(ValueError, match=r"no chunk of a training document.*ingest more"):
        collapsed(corpus.documents, corpus.chunks)
