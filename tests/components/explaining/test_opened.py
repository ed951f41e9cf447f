"""A checkpoint opens with all that belongs to it, and with nothing that belongs to another."""

import shutil

import pytest
import torch

from components import contracts
from components.contracts import ContractError
from components.explaining.explanation import explain
from components.explaining.opened import open_checkpoint
from components.explaining.schema import ExplainOptions, GenerateRequest
from model import checkpoint as checkpoints
from model import released
from model.checkpoint import CheckpointError
from model.language_model import LanguageModel
from model.sampling_config import SamplingConfig
from tests.components.explained_run import write_checkpoint


def alone(folder, index=None):
    return open_checkpoint(folder, index=index, names=None, calibration=None)


def test_concepts_have_the_names_of_the_library(opened):
    assert opened.vocabulary.name("known", 1) == "bread"
    assert opened.vocabulary.n_unknown == 18
    assert opened.notes == ()


@pytest.fixture
def released_folder(small, tmp_path):
    """A random network of the small run's vocabulary, in the released format."""
    config = checkpoints.load(small.checkpoint).config
    bottleneck = config.bottleneck.model_copy(update={"rank": None, "known_bias": False})
    lm = LanguageModel(config.model_copy(update={"bottleneck": bottleneck}))
    released.save(lm, tmp_path)
    return tmp_path


def test_the_released_format_opens_without_names_and_says_so(released_folder):
    found = alone(released_folder)
    assert found.vocabulary.name("known", 1) == "concept 1"
    assert found.tokenizer is None
    assert any("prompts are token ids" in said for said in found.notes)
    assert any("go by their numbers" in said for said in found.notes)
    sampling = SamplingConfig(n_new=5)
    options = ExplainOptions(input_targets=1, draws=5)
    told = explain(found, GenerateRequest(prompt_ids=(3, 1, 4), sampling=sampling), options)
    assert told.generation.prompt_tokens == (" 3", " 1", " 4")
    assert told.tokens[0].token == f" {told.generation.tokens[0].token_id}"
    assert told.notes == found.notes
    with pytest.raises(ValueError, match="reads token ids alone; give the prompt as ids"):
        explain(found, GenerateRequest(prompt="rain", sampling=sampling), options)


def test_a_network_with_a_weight_that_is_no_number_is_refused(small, tmp_path):
    folder = tmp_path / "checkpoint"
    shutil.copytree(small.checkpoint, folder)
    lm = checkpoints.load(folder)
    with torch.no_grad():
        lm.embedding.weight[3, 2] = float("nan")
    checkpoints.save(lm, folder)
    contracts.seal(folder, contracts.CHECKPOINT)
    with pytest.raises(CheckpointError, match=r"not finite, in 1 matrices such as embedding"):
        alone(folder)


def test_an_index_of_another_checkpoint_is_refused(small, index, tmp_path):
    other = write_checkpoint(tmp_path / "other", small.tokens, small.lifted, seed=5)
    with pytest.raises(ContractError, match="was built for the checkpoint"):
        alone(other, index)


def test_an_index_that_was_changed_since_is_refused(small, index, tmp_path):
    broken = tmp_path / "index"
    shutil.copytree(index, broken)
    with (broken / "index.faiss").open("r+b") as file:
        file.seek(30)
        file.write(b"\xff")
    with pytest.raises(ContractError, match=r"index\.faiss"):
        alone(small.checkpoint, broken)


def test_what_is_no_checkpoint_is_refused_with_what_would_be_one(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match=r"give the folder of a checkpoint"):
            alone(folder)


def test_names_of_another_network_are_refused(released_folder):
    (released_folder / "concepts.json").write_text('{"digest": "d", "concepts": []}')
    with pytest.raises(CheckpointError, match="names 0 concepts, the network has 6"):
        alone(released_folder)


def test_an_index_of_the_released_format_and_folders_that_are_not_there_are_refused(
    released_folder, tmp_path
):
    for folder, said in ((tmp_path, "leave out --index"), (tmp_path / "no", "there is no folder")):
        with pytest.raises(CheckpointError, match=said):
            open_checkpoint(released_folder, index=folder, names=None, calibration=None)
