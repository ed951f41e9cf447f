"""`python -m components.atlas evaluate`: a planted set is recovered, bad files are refused."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from components.atlas import gold_files
from components.atlas.__main__ import main
from components.atlas.evaluation import Split, evaluate
from components.atlas.gold_config import GoldConfig
from components.atlas.learning_config import LearnConfig

TOPICS = {
    "sea": "sea ship sailor harbour", "law": "law court judge statute", "sum": "sum number proof",
}  # fmt: skip


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """60 texts on three topics, every third on two; concepts have names and descriptions alone."""
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))
    words = list(TOPICS.values())
    names = list(TOPICS)
    texts, labels = [], []
    for row in range(60):
        also = [(row + 1) % 3] if row % 9 == 0 else []
        texts.append(" ".join([words[topic] for topic in (row % 3, *also)]) + f" {row}")
        labels.append([names[topic] for topic in (row % 3, *also)])
    write = {
        "gold": {"text": texts, "labels": labels},
        "documents": {"text": texts},
        "concepts": {"name": names, "description": words},
    }
    for name, columns in write.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return tmp_path


def run(folder, *more):
    files = [
        part
        for name in ("concepts", "documents", "gold")
        for part in (f"--{name}", str(folder / f"{name}.parquet"))
    ]
    measure = ["evaluate", *files, "--out", str(folder / "out"), "--encoder", "hashing"]
    return main([*measure, "--draws", "20", *more])


def test_three_annotators_are_measured_on_the_same_texts(brought):
    assert run(brought) == 0
    told = json.loads((brought / "out/scores.json").read_text())
    assert (told["n_train"], told["n_held_back"], told["n_test"]) == (30, 6, 30)
    assert set(told["annotators"]) == {"cards", "neighbours", "trained"}
    for figures in told["annotators"].values():
        assert set(figures) == {
            "macro_auc", "micro_auc", "mean_average_precision", "macro_average_precision",
            "precision_at_1", "recall_at_5", "recall_at_16", "calibration_error",
        }  # fmt: skip
        assert figures["macro_auc"]["value"] > 0.95
        assert figures["precision_at_1"]["n"] == 30
        assert all(0 <= one["low"] <= one["high"] <= 1 for one in figures.values())
    table = pq.read_table(brought / "out/concepts.parquet")
    assert table.num_rows == 9
    assert pa.csv.read_csv(brought / "out/concepts.csv").column_names == table.column_names


def test_the_same_files_give_the_same_bytes(brought):
    files = [brought / f"{name}.parquet" for name in ("concepts", "documents", "gold")]
    learning = LearnConfig(n_steps=2, n_unlabelled=8)
    config = GoldConfig(encoder="hashing", learning=learning, bootstrap_draws=5)
    made = []
    for _ in range(2):
        evaluate(*files, brought / "out", config, brought / "cache")
        made.append([path.read_bytes() for path in sorted((brought / "out").iterdir())])
    assert made[0] == made[1]
    assert len(made[0]) == 3


def test_without_texts_to_train_on_the_cards_are_measured_alone(brought):
    assert run(brought, "--train-share", "0") == 0
    told = json.loads((brought / "out/scores.json").read_text())
    assert (told["n_train"], told["n_test"], list(told["annotators"])) == (0, 60, ["cards"])


def test_texts_of_one_document_are_never_apart(brought):
    table = pq.read_table(brought / "gold.parquet")
    doc_ids = pa.array([f"d{row // 4}" for row in range(60)])
    pq.write_table(table.append_column("doc_id", doc_ids), brought / "gold.parquet")
    said = gold_files.read(
        *(brought / f"{name}.parquet" for name in ("concepts", "documents", "gold"))
    )
    split = Split.of(said, GoldConfig(encoder="hashing", n_train=5))
    sides = [set(said.document_N[rows]) for rows in (split.train_P, split.held_back_C)]
    assert [len(side) for side in sides] == [4, 1]
    assert not sides[0] & sides[1]
    assert len(split.test_H) == 40


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("gold", {"text": ["a"]}, r"lacks the columns \['labels'\]"),
        ("gold", {"text": [], "labels": []}, "has no rows"),
        ("gold", {"text": ["a"], "labels": [[]]}, "no text has a label"),
        ("gold", {"text": ["a", " "], "labels": [["sea"], []]}, "the first in row 1"),
        ("gold", {"text": ["a"], "labels": [["fish"]]}, r"1 labels are no concept .* 'fish'"),
        ("gold", {"text": ["a"], "labels": [["sea"]]}, "2 documents to train on leave none of 1"),
        ("concepts", {"name": ["sea"]}, r"lacks the columns \['description'\]"),
        ("concepts", {"name": ["x", "x"], "description": ["", ""]}, "1 concepts share their name"),
        ("documents", {"title": ["a"]}, r"lacks the columns \['text'\]"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_one_line(brought, capsys, name, columns, message):
    pq.write_table(pa.table(columns), brought / f"{name}.parquet")
    assert run(brought) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    with pytest.raises(ValueError, match=message):
        raise ValueError(said)


def test_a_file_that_is_not_there_or_no_parquet_is_refused(brought, capsys):
    (brought / "gold.parquet").write_text("text,labels")
    assert run(brought) == 2
    assert "is no parquet file" in capsys.readouterr().err
    (brought / "gold.parquet").unlink()
    assert run(brought) == 2
    assert "is not there" in capsys.readouterr().err


def test_labels_may_be_ids(brought):
    table = pa.table({"text": ["a", "b"], "labels": [[7], [9]]})
    pq.write_table(table, brought / "gold.parquet")
    concepts = {"concept_id": [9, 7], "name": ["x", "y"], "description": [None, ""]}
    pq.write_table(pa.table(concepts), brought / "concepts.parquet")
    said = gold_files.read(
        *(brought / f"{name}.parquet" for name in ("concepts", "documents", "gold"))
    )
    assert said.labels_NK.toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]
