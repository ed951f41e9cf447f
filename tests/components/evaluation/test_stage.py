"""One evaluation, end to end: every condition answered, with n and interval, twice the same."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from components import contracts
from components.capability.config import CapabilityConfig
from components.evaluation.config import EvaluateConfig
from components.evaluation.reading import unigram_nats
from components.evaluation.stage import evaluate
from components.tokens import TokenStream
from tests.components.capability import packaged
from tests.components.written_tokens import BLOCK, write_checkpoint, write_tokens

CONFIG = EvaluateConfig(
    length=4 * BLOCK, batch_sequences=3, min_positives=5, estimator_tokens=128,
    agreement_tokens=9, alignment_tokens=4, embedder="hashing",
)  # fmt: skip


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokens(tmp_path_factory.mktemp("data") / "tokens")


def evaluated(
    tokens: Path, folder: Path, family: str = "cdlm_concept", config: EvaluateConfig = CONFIG
) -> dict[str, dict[str, object]]:
    checkpoint = write_checkpoint(folder / "checkpoint", tokens, family)
    (folder / "scores").mkdir()
    evaluate(checkpoint, tokens, folder / "scores", config)
    contracts.verify(folder / "scores", contracts.SCORES)
    return json.loads((folder / "scores" / "scores.json").read_text())


def test_every_condition_is_answered_with_an_interval(tokens, tmp_path):
    scores = evaluated(tokens, tmp_path)
    assert {score["condition"] for score in scores.values()} == {
        "capability", "nativeness", "agreement", "validity", "interpretation", "coverage",
    }  # fmt: skip
    for name, score in scores.items():
        assert math.isfinite(score["value"]), name
        assert score["low"] <= score["value"] <= score["high"], name
        assert score["n"] > 0, name
    assert (tmp_path / "scores" / "scores.png").stat().st_size > 10_000


def test_an_untrained_network_is_at_the_price_of_not_knowing(tokens, tmp_path):
    scores = evaluated(tokens, tmp_path)
    for estimator in ("rate_0.5", "grid_9_rates"):
        found = scores[f"nll_nats_per_token_{estimator}"]["value"]
        assert found == pytest.approx(math.log(300), abs=0.1)
    # Weighted by 1 / rate, so few tokens make the bound noisy; its interval says how noisy.
    assert 3.0 < scores["nll_nats_per_token_per_block_elbo"]["value"] < 9.0
    assert scores["unigram_nats_per_token_rate_0.5"]["value"] < math.log(300) - 1
    assert scores["logit_sum_error_max"]["value"] < 1e-5
    assert scores["agreement_error_logits"]["value"] < 1e-5


def test_domains_are_scored_apart(tokens, tmp_path):
    scores = evaluated(tokens, tmp_path)
    letters, notes = scores["bits_per_byte_letters"], scores["bits_per_byte_notes"]
    assert letters["n"] + notes["n"] == scores["bits_per_byte"]["n"] == 9


@pytest.mark.parametrize("family", ["cdlm", "ar"])
def test_a_family_without_concepts_has_capability_alone(tokens, tmp_path, family: str):
    scores = evaluated(tokens, tmp_path, family)
    assert {score["condition"] for score in scores.values()} == {"capability"}
    name = "nll_nats_per_token" if family == "ar" else "nll_nats_per_token_rate_0.5"
    assert scores[name]["value"] == pytest.approx(math.log(300), abs=0.1)


def test_next_token_bits_follow_from_next_token_nats(tokens, tmp_path):
    scores = evaluated(tokens, tmp_path, "ar_concept")
    stream = TokenStream(tokens)
    rows = [row for split in ("valid", "test") for row in stream.span_rows(split)]
    n_tokens = sum(len(stream.span_tokens(row)) for row in rows) - 9  # a BOS a document
    n_bytes = stream.spans.n_bytes[rows].sum()
    wanted = scores["nll_nats_per_token"]["value"] / math.log(2) * n_tokens / n_bytes
    assert scores["bits_per_byte"]["value"] == pytest.approx(wanted, rel=0.02)


def test_the_same_checkpoint_gives_the_same_bytes(tokens, tmp_path):
    digests = []
    for name in ("one", "two"):
        evaluated(tokens, tmp_path / name)
        digests.append(contracts.manifest_of(tmp_path / name / "scores").digest)
    assert digests[0] == digests[1]


def test_a_window_longer_than_the_network_reads_is_refused(tokens, tmp_path):
    config = CONFIG.model_copy(update={"length": 5 * BLOCK})
    with pytest.raises(ValueError, match="length is 40, but the checkpoint reads 32"):
        evaluated(tokens, tmp_path, config=config)


def test_tokens_labelled_with_a_larger_library_are_refused(tokens, tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", tokens, n_known=3)
    (tmp_path / "scores").mkdir()
    with pytest.raises(ValueError, match=r"carry concept 4, but the checkpoint knows 0 … 2"):
        evaluate(checkpoint, tokens, tmp_path / "scores", CONFIG)


def test_the_unigram_counts_training_text_alone(tokens):
    stream = TokenStream(tokens)
    nats_V = unigram_nats(stream, CONFIG)
    count_V = np.zeros(stream.vocab_size)
    for row in stream.span_rows("train"):
        np.add.at(count_V, stream.span_tokens(row), 1)
    count_V[stream.specials.bos_id] = 0
    wanted_V = -np.log((count_V + 0.5) / (count_V + 0.5).sum())
    torch.testing.assert_close(nats_V, torch.from_numpy(wanted_V))


def test_packaged_benchmarks_stand_beside_the_held_out_text_where_asked_for(
    tokens, tmp_path, monkeypatch
):
    packaged.write(tmp_path / "packages", monkeypatch)
    asked = CapabilityConfig(benchmarks=("truthfulqa_mc1",))
    config = CONFIG.model_copy(update={"capability": asked})
    scores = evaluated(tokens, tmp_path, "cdlm", config)
    assert scores["truthfulqa_mc1_chance"]["value"] == 0.5
    assert scores["truthfulqa_mc1_accuracy"]["n"] == 1
    assert "bits_per_byte" in scores
    assert (tmp_path / "scores" / "questions.jsonl").is_file()
