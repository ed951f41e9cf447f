"""A calibration says how strongly to steer what and on which evidence, for one checkpoint."""

import json
from pathlib import Path

import pytest

from components import contracts
from components.steering_calibration import FACTS_FILE, Facts, Strength, columns_of, load
from model.directions import ConceptRef, known
from model.steering import Change
from model.steering_config import InjectionConfig


def strength(logits: float, source: str = "own") -> Strength:
    return Strength.model_validate(
        {"logits": logits, "source": source, "harmonic_mean": 0.5, "low": 0.4, "high": 0.6, "n": 3}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    facts = Facts(
        checkpoint_digest="c" * 64, n_layers=8, amplify=InjectionConfig(after=0.5),
        suppress=InjectionConfig(after=0.25, layers="onward", positions="all", first_tokens=7),
        common={"amplify": strength(16.0, "common"), "suppress": strength(9.0, "common")},
    )  # fmt: skip
    (tmp_path / FACTS_FILE).write_text(facts.model_dump_json())
    rows = [
        {
            "concept_id": concept, "kind": "known",
            **columns_of(strength(5.0 + concept), "amplify"),
            **columns_of(strength(9.0, "common"), "suppress"),
        }
        for concept in (2, 4)
    ]  # fmt: skip
    contracts.write(rows, tmp_path, contracts.CALIBRATION)
    return tmp_path


def test_a_concept_has_its_own_strength_and_others_the_common_one(folder: Path) -> None:
    found = load(folder, "c" * 64)
    assert found.strength(known(4), "amplify") == strength(9.0)
    assert found.strength(known(3), "amplify") == strength(16.0, "common")
    assert found.strength(known(4), "suppress") == strength(9.0, "common")
    assert found.strength([*known(2), *known(4)], "amplify").source == "common"
    assert found.strength([ConceptRef("unknown", 4)], "amplify").source == "common"


def test_a_change_is_made_as_it_was_evaluated(folder: Path) -> None:
    found = load(folder, "c" * 64)
    assert found.change(known(2), "amplify") == Change(known(2), 7.0, layers=(4,))
    assert found.change(known(2), "suppress", strength=3.0) == Change(
        known(2), 3.0, "suppress", layers=2, positions="all", first_tokens=7
    )
    replaced = found.change(known(1), "replace", instead=known(4))
    assert replaced == Change(known(1), 9.0, "replace", known(4), layers=(4,))


def test_the_calibration_of_another_checkpoint_is_refused(folder: Path) -> None:
    with pytest.raises(contracts.ContractError, match="strengths for the checkpoint cccccccccccc…"):
        load(folder, "d" * 64)


def test_an_edited_calibration_is_refused(folder: Path) -> None:
    facts = json.loads((folder / FACTS_FILE).read_text())
    (folder / FACTS_FILE).write_text(json.dumps({**facts, "n_layers": 4}))
    with pytest.raises(contracts.ContractError):
        load(folder, "c" * 64)
