"""A file says what the library says, and the released layout reads as the released package does."""

import csv
import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from components.catalogue.export import export, row_of
from tests.components.catalogue import small_library

AWKWARD = {'Quotes, "commas"\nand lines': ('a "tag", with; all', "=1+1"), "Ärger 怒り": ("怒り",)}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return small_library.write(tmp_path_factory.mktemp("library") / "odd", AWKWARD)


@pytest.fixture
def rows(library):
    return [row_of(concept) for concept in library.concepts]


def test_parquet_has_the_columns_of_the_contract_and_the_digest(library, rows, tmp_path):
    assert export(library, tmp_path / "deep" / "c.parquet", "clearstory") == 2
    table = pq.read_table(tmp_path / "deep" / "c.parquet")
    assert table.to_pylist() == rows
    assert table.schema.metadata[b"library_digest"].decode() == library.digest


def test_json_reads_back_as_the_rows(library, rows, tmp_path):
    export(library, tmp_path / "c.json", "clearstory")
    said = json.loads((tmp_path / "c.json").read_text())
    assert said == {"library_digest": library.digest, "concepts": rows}


def test_csv_reads_back_as_the_rows(library, rows, tmp_path):
    export(library, tmp_path / "c.csv", "clearstory")
    with (tmp_path / "c.csv").open(newline="") as handle:
        found = list(csv.DictReader(handle))
    assert [row["name"] for row in found] == [row["name"] for row in rows]
    assert [json.loads(row["members"]) for row in found] == [row["members"] for row in rows]
    assert [float(row["prevalence"]) for row in found] == [row["prevalence"] for row in rows]


def test_the_released_layout_reads_as_the_released_package_reads_it(library, tmp_path):
    """Its catalogue: indexed by id, filtered by head and steerability, groups by id."""
    export(library, tmp_path / "concept_labels.parquet", "released")
    table = pd.read_parquet(tmp_path / "concept_labels.parquet")
    assert list(table.columns) == [
        "concept_id", "concept_name", "concept_description", "head", "public_group_id",
        "group_name", "is_steerable", "is_tone", "is_alignment", "is_demographic",
    ]  # fmt: skip
    table = table.set_index("concept_id", drop=False)
    found = table[table["head"] == "known"]
    found = found[found["is_steerable"]]
    for concept in library.concepts:
        row = found.loc[concept.concept_id]
        assert str(row["concept_name"]) == concept.name
        assert str(row["concept_description"]) == concept.description
        assert str(row["group_name"]) == concept.parent
        assert bool(row["is_tone"]) == (concept.kind == "tone")
        assert not bool(row["is_alignment"])
        same_group = table[table["public_group_id"] == row["public_group_id"]]["group_name"]
        assert set(same_group) == {concept.parent}


def test_the_same_library_makes_the_same_bytes(library, tmp_path):
    for name in ("a.parquet", "b.parquet"):
        export(library, tmp_path / name, "released")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("name", "layout", "said"),
    [
        ("c.xls", "clearstory", r"ends in \.xls; .* \.parquet or \.csv or \.json"),
        ("c", "clearstory", "ends in nothing"),
        ("c.csv", "released", r"the released layout is written as \.parquet"),
    ],
)
def test_an_ending_that_is_not_written_is_refused_with_those_that_are(
    library, tmp_path, name, layout, said
):
    with pytest.raises(ValueError, match=said):
        export(library, tmp_path / name, layout)
    assert list(tmp_path.iterdir()) == []
