"""A frozen library opens as it was frozen, and not at all once somebody edited it."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from components import contracts
from components.library import freeze, open_library

CENTROIDS_KD = np.eye(3, 4, dtype=np.float32)


def rows() -> list[dict[str, object]]:
    return [
        {
            "concept_id": concept_id, "name": name, "description": f"About {name}.",
            "kind": "content", "parent": "Arts", "taxonomy": f"Arts / {name}",
            "prevalence": 0.1 + concept_id / 7, "n_chunks": 9 - concept_id,
            "coherence": 0.7 + concept_id / 11, "members": [name.lower(), f"{name.lower()}s"],
        }
        for concept_id, name in enumerate(["Poem", "Étude", "Novel"])
    ]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    freeze(rows(), CENTROIDS_KD, {"n_concepts": 3, "history": []}, tmp_path)
    return tmp_path


def _resealed(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    contracts.seal(folder, contracts.CONCEPTS, rows=3)


def test_a_frozen_library_opens_as_it_was_frozen(folder):
    library = open_library(folder)
    assert [each.name for each in library.concepts] == ["Poem", "Étude", "Novel"]
    assert library.concepts[1].members == ("étude", "études")
    assert library.concepts[2].coherence == pytest.approx(0.7 + 2 / 11)
    assert library.facts["n_concepts"] == 3
    np.testing.assert_array_equal(library.centroids_KD, CENTROIDS_KD)
    found = library.named(" éTUDE ")
    assert found is not None
    assert found.concept_id == 1
    assert library.named("sculpture") is None


def test_the_digest_is_of_the_content_and_nothing_else(folder, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    freeze(rows(), CENTROIDS_KD, {"n_concepts": 3, "history": ["longer"]}, other)
    assert open_library(other).digest == open_library(folder).digest


def test_a_renamed_concept_is_refused_even_when_sealed_again(folder):
    table = pq.read_table(folder / "rows.parquet")
    edited = table.to_pylist()
    edited[1]["name"] = "Sketch"
    before = open_library(folder).digest
    pq.write_table(type(table).from_pylist(edited, schema=table.schema), folder / "rows.parquet")
    with pytest.raises(contracts.ContractError, match="rerun --from canonicalise"):
        open_library(folder)
    _resealed(folder)
    with pytest.raises(contracts.ContractError, match=f"was edited .*{before}.*canonicalise"):
        open_library(folder)


def test_a_moved_centroid_is_refused(folder):
    np.save(folder / "centroids.npy", CENTROIDS_KD[::-1])
    _resealed(folder)
    with pytest.raises(contracts.ContractError, match="was edited after it was frozen"):
        open_library(folder)


def test_a_digest_written_by_hand_is_refused(folder):
    facts = json.loads((folder / "library.json").read_text())
    (folder / "library.json").write_text(json.dumps({**facts, "digest": "0" * 64}))
    _resealed(folder)
    with pytest.raises(contracts.ContractError, match="says 0000"):
        open_library(folder)


def test_ids_out_of_order_are_refused(tmp_path):
    freeze(rows()[::-1], CENTROIDS_KD, {}, tmp_path)
    with pytest.raises(contracts.ContractError, match=r"ids \[2, 0\] out of order; ids are 0 to 2"):
        open_library(tmp_path)
