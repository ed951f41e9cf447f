"""A model version says what was measured, and its card nothing else."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from components import contracts
from components.contracts import ContractError
from components.registry.config import PromoteConfig
from components.registry.stage import promote
from tests.components.written_tokens import write_checkpoint, write_tokens


def score(value: float, low: float, high: float, condition: str) -> dict[str, object]:
    return {
        "value": value, "n": 12, "n_of": "documents", "low": low, "high": high,
        "unit": "nats per token", "condition": condition, "note": "",
    }  # fmt: skip


def write_scores(folder: Path, alignment_low: float) -> Path:
    folder.mkdir()
    scores = {
        "bits_per_byte": score(2.5, 2.4, 2.6, "capability"),
        "alignment_auroc": score(0.6, alignment_low, 0.8, "interpretation"),
        "cost_of_residual_zero_nats_per_token": score(0.3, 0.2, 0.4, "coverage"),
    }
    (folder / "scores.json").write_text(json.dumps(scores))
    contracts.seal(folder, contracts.SCORES)
    return folder


def promoted(tmp_path: Path, alignment_low: float = 0.55) -> Path:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", write_tokens(tmp_path / "tokens"))
    version = tmp_path / "version"
    version.mkdir()
    config = PromoteConfig(name="debug-lm")
    promote(checkpoint, write_scores(tmp_path / "scores", alignment_low), version, config)
    return version


def test_a_version_names_its_checkpoint_by_digest(tmp_path):
    folder = promoted(tmp_path)
    contracts.verify(folder, contracts.MODEL_VERSION)
    version = contracts.json_file(folder, "version.json")
    checkpoint = contracts.manifest_of(tmp_path / "checkpoint")
    assert version["name"] == "debug-lm"
    assert version["alias"] == "candidate"
    assert version["checkpoint_digest"] == checkpoint.digest
    assert version["scores"]["bits_per_byte"]["high"] == 2.6


def test_the_card_shows_scores_with_intervals_and_what_made_them(tmp_path):
    card = (promoted(tmp_path) / "card.md").read_text()
    assert "| `bits_per_byte` | 2.5 | 2.4 to 2.6 | nats per token | 12 documents |" in card
    assert contracts.manifest_of(tmp_path / "checkpoint").digest in card
    assert "| concept library | `made-up` |" in card
    assert "5 named concepts" in card


def test_the_card_draws_its_limits_from_the_numbers(tmp_path):
    card = (promoted(tmp_path) / "card.md").read_text()
    assert "12 held-out documents" in card
    assert "loses 0.3 [0.2, 0.4] nats per token" in card
    assert "tells own from wrong pairings better than chance (0.6 [0.55, 0.8])" in card


def test_the_card_says_so_when_the_judge_is_at_chance(tmp_path):
    card = (promoted(tmp_path, alignment_low=0.45) / "card.md").read_text()
    assert "does not tell own from wrong pairings better than chance" in card


def test_scores_changed_by_hand_are_refused(tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", write_tokens(tmp_path / "tokens"))
    scores = write_scores(tmp_path / "scores", 0.5)
    (scores / "scores.json").write_text((scores / "scores.json").read_text().replace("2.5", "1.5"))
    (tmp_path / "version").mkdir()
    with pytest.raises(ContractError, match="changed after it was written"):
        promote(checkpoint, scores, tmp_path / "version", PromoteConfig(name="debug-lm"))


@pytest.mark.parametrize("name", ["", "has space", "a/b"])
def test_a_name_that_no_registry_takes_is_refused(name: str):
    with pytest.raises(ValidationError, match="name"):
        PromoteConfig(name=name)
