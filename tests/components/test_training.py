"""The training stage on a made-up language, under torchrun and DeepSpeed."""

import json

import pytest
import torch

from components import contracts, loader
from components.library import open_library
from components.optimisation import tokens_per_chunk
from components.tokens import TokenStream
from components.training.stage import train
from model import checkpoint as checkpoints
from model.bottleneck import RAREST
from model.engine import PlainEngine
from model.language_model import LanguageModel
from model.train import fit
from model.zero_config import ZeroConfig
from tests.components.small_training import LENGTH, N_STEPS, train_config
from tests.components.written_tokens import CONCEPTS, write_concepts, write_tokens


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Tokens, and a checkpoint and curve trained on them by one rank."""
    folder = tmp_path_factory.mktemp("trained")
    tokens, concepts = write_tokens(folder / "tokens"), write_concepts(folder / "concepts")
    for name in ("checkpoint", "curve"):
        (folder / name).mkdir()
    told = []
    train(
        tokens,
        concepts,
        folder / "checkpoint",
        folder / "curve",
        train_config(),
        events=told.append,
    )
    return folder, told


def plain(folder, config):
    """The same training in this process, without DeepSpeed."""
    stream = TokenStream(folder / "tokens")
    network = config.network.language_model(
        vocab_size=stream.vocab_size, n_known=len(CONCEPTS), specials=stream.specials
    )
    lm = LanguageModel(network, config.training.seed)
    lm.concepts.known.start_at(torch.full((5,), 0.3), tokens_per_chunk(stream))
    engine = PlainEngine(lm, config.training)
    batches = loader.of_stream(
        stream, {}, length=LENGTH, batch_sequences=4, seed=config.training.seed
    )
    history = fit(engine, config.training, batches.batch, [])
    return engine.finished(), history


def test_the_checkpoint_opens_alone_and_carries_its_library(trained):
    folder, _ = trained
    manifest = contracts.verify(folder / "checkpoint", contracts.CHECKPOINT)
    assert set(manifest.files) == set(contracts.CHECKPOINT.files)
    lm = checkpoints.load(folder / "checkpoint")
    assert lm(torch.zeros(1, LENGTH, dtype=torch.int64)).shape == (1, LENGTH, 300)
    library = contracts.json_file(folder / "checkpoint", "concepts.json")
    assert library["digest"] == open_library(folder / "concepts").digest
    assert [concept["name"] for concept in library["concepts"]] == list(CONCEPTS)


def test_the_curve_rises_in_tokens_and_falls_in_loss(trained):
    folder, _ = trained
    table = contracts.read(folder / "curve", contracts.CURVE)
    assert table.column("step").to_pylist() == [4, 6, 8, 12]
    losses = table.column("nll_nats").to_pylist()
    assert losses[-1] < losses[0] - 0.3
    valid = table.column("valid_nll_nats").to_pylist()
    assert [value is not None for value in valid] == [False, True, False, True]
    run = json.loads((folder / "curve" / "run.json").read_text())
    assert run["n_tokens"] == N_STEPS * 4 * LENGTH
    assert run["final"]["valid_nll_nats"] == valid[-1]


def test_progress_comes_from_the_ranks(trained):
    _, told = trained
    assert [event.step for event in told if "flops" in event.metrics] == [4, 6, 8, 12]
    assert {event.total_steps for event in told} == {N_STEPS}


def test_deepspeed_trains_the_weights_of_the_plain_loop(trained):
    folder, _ = trained
    lm, history = plain(folder, train_config())
    losses = contracts.read(folder / "curve", contracts.CURVE).column("nll_nats").to_pylist()
    theirs = dict(checkpoints.load(folder / "checkpoint").named_parameters())
    for name, parameter in lm.named_parameters():
        torch.testing.assert_close(theirs[name], parameter, atol=1e-5, rtol=1e-4)
    assert losses == pytest.approx([row.nll_nats for row in history.rows], rel=1e-6)


def test_biases_start_at_the_prevalence_of_the_library(trained):
    folder, _ = trained
    per_chunk = tokens_per_chunk(TokenStream(folder / "tokens"))
    assert RAREST < 0.3 / per_chunk < 0.3
    assert 5.0 < per_chunk < 40.0


@pytest.mark.slow  # every other stage and split: tests.model.test_zero
def test_two_ranks_train_the_weights_of_one_process(trained, tmp_path):
    folder, _ = trained
    one = train_config(ranks=2)
    split = one.training.model_copy(update={"micro_batches": 2})
    config = one.model_copy(update={"zero": ZeroConfig(stage=3), "training": split})
    for name in ("checkpoint", "curve"):
        (tmp_path / name).mkdir()
    train(
        folder / "tokens",
        folder / "concepts",
        tmp_path / "checkpoint",
        tmp_path / "curve",
        config,
    )
    lm, _ = plain(folder, train_config())
    theirs = dict(checkpoints.load(tmp_path / "checkpoint").named_parameters())
    for name, parameter in lm.named_parameters():
        torch.testing.assert_close(theirs[name], parameter, atol=1e-5, rtol=1e-4)
    first, second = (
        contracts.read(place / "curve", contracts.CURVE).column("nll_nats").to_pylist()
        for place in (folder, tmp_path)
    )
    assert first == pytest.approx(second, rel=1e-6)


def test_a_library_edited_after_it_was_frozen_is_refused_before_training(tmp_path):
    tokens, concepts = write_tokens(tmp_path / "tokens"), write_concepts(tmp_path / "concepts")
    facts = contracts.json_file(concepts, "library.json")
    (concepts / "library.json").write_text(json.dumps({**facts, "digest": "0" * 64}))
    contracts.seal(concepts, contracts.CONCEPTS, rows=len(CONCEPTS))
    with pytest.raises(contracts.ContractError, match="was edited after it was frozen"):
        train(tokens, concepts, tmp_path / "checkpoint", tmp_path / "curve", train_config())
    assert not (tmp_path / "checkpoint").exists()
