"""The mid-training stage: from a checkpoint, under another mixture, to no teacher forcing."""

import json

import pytest
import torch
from pydantic import ValidationError

from components import contracts
from components.launch import RanksConfig
from components.midtraining.config import NOISE, OBJECTIVE, MidtrainConfig
from components.midtraining.stage import midtrain
from components.packing.config import LiftConfig
from components.packing.lift import lift
from model import checkpoint as checkpoints
from model.train_config import InterleavingConfig, ObjectiveConfig, OptimConfig
from tests.components.small_training import training
from tests.components.written_tokens import write_checkpoint, write_concepts, write_tokens

LIFT = LiftConfig(min_support=2)
PHASES = InterleavingConfig(phases=2, phase=0.1, warmup=0.1)
OPTIM = OptimConfig(peak_lr=2e-3, warmup=0.0, decay=1.0, decay_shape="linear")


def config():
    return MidtrainConfig(
        training=training(OBJECTIVE, OPTIM).model_copy(update={"interleaving": PHASES}),
        domain_weights={"letters": 3.0, "notes": 1.0},
        ranks=RanksConfig(ranks=1, threads=1),
        validation_sequences=4,
    )


def run(read, written, tokens=None):
    inputs = (tokens or read / "tokens", read / "before", read / "lifted")
    midtrain(*inputs, written / "after", written / "curve", config())


@pytest.fixture(scope="module")
def midtrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("midtrained")
    tokens = write_tokens(folder / "tokens")
    write_checkpoint(folder / "before", tokens)
    for name in ("after", "curve", "lifted"):
        (folder / name).mkdir()
    lift(tokens, write_concepts(folder / "concepts"), folder / "lifted", LIFT)
    run(folder, folder)
    return folder


def test_weights_move_and_library_and_tokenizer_stay(midtrained):
    contracts.verify(midtrained / "after", contracts.CHECKPOINT)
    before, after = (checkpoints.load(midtrained / name) for name in ("before", "after"))
    assert before.config == after.config
    moved = [
        not torch.equal(one, other)
        for one, other in zip(before.parameters(), after.parameters(), strict=True)
    ]
    assert all(moved)
    for name in ("concepts.json", "tokenizer.json"):
        assert (midtrained / "before" / name).read_text() == (
            midtrained / "after" / name
        ).read_text()


def test_the_checkpoint_remembers_what_came_before(midtrained):
    facts = json.loads((midtrained / "after" / "training.json").read_text())
    assert facts["earlier"]["steps"] == 3
    assert facts["domain_weights"] == {"letters": 3.0, "notes": 1.0}


def test_the_rate_falls_to_zero_and_the_loss_with_it(midtrained):
    table = contracts.read(midtrained / "curve", contracts.CURVE)
    rates, losses = (table.column(name).to_pylist() for name in ("lr", "nll_nats"))
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(2e-3 / 12)
    assert losses[-1] < losses[0]


def test_the_papers_choices_are_the_defaults_of_the_phase():
    assert (OBJECTIVE.alpha_known.first, OBJECTIVE.alpha_known.last) == (0.5, 0.0)
    assert OBJECTIVE.alpha_unknown.first == OBJECTIVE.alpha_unknown.last == 0.0
    assert OBJECTIVE.residual_dropout == 0.3
    assert OBJECTIVE.independence == "two_term"
    assert NOISE.kind == "uniform"


def test_forcing_that_does_not_end_is_refused():
    with pytest.raises(ValidationError, match=r"alpha_known.last is 0.5; set it to 0"):
        MidtrainConfig(training=training(ObjectiveConfig(), OPTIM), domain_weights={})


def test_tokens_of_another_tokenizer_are_refused(midtrained, tmp_path):
    tokens = write_tokens(tmp_path / "tokens", n_documents=16, seed=3)
    for name in ("after", "curve"):
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match="written in another of 300; pack the corpus"):
        run(midtrained, tmp_path, tokens)
