"""Checkpoints of both formats open, and folders that are none say why."""

from pathlib import Path

import pytest

from components import contracts
from components.networks import open_network
from model import checkpoint, released
from model.checkpoint import CheckpointError
from model.tokenizer import N_BYTES, SPECIALS, train
from tests.components import reader


def folder_of_ours(folder: Path) -> Path:
    checkpoint.save(reader.network("cdlm").lm, folder)
    train([""], N_BYTES + len(SPECIALS), folder / "tokenizer.json")
    for name in ("concepts.json", "training.json"):
        (folder / name).write_text("{}")
    contracts.seal(folder, contracts.CHECKPOINT)
    return folder


def test_both_formats_open_as_the_same_network(tmp_path: Path):
    ours = open_network(folder_of_ours(tmp_path))
    given = tmp_path / "released"
    released.save(reader.network("cdlm").lm, given)
    train([""], N_BYTES + len(SPECIALS), given / "tokenizer.json")
    theirs = open_network(given)
    assert ours.lm.config == theirs.lm.config
    assert ours.digest != theirs.digest
    (given / "generation_config.json").write_text("{}")
    assert open_network(given).digest != theirs.digest


def test_a_checkpoint_whose_weights_changed_is_refused(tmp_path: Path):
    folder = folder_of_ours(tmp_path)
    with (folder / "weights.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    with pytest.raises(contracts.ContractError, match=r"weights\.safetensors"):
        open_network(folder)


def test_a_folder_that_is_no_checkpoint_says_what_is_missing(tmp_path: Path):
    with pytest.raises(CheckpointError, match="is not a folder"):
        open_network(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"neither manifest\.json"):
        open_network(tmp_path)
    released.save(reader.network("cdlm").lm, tmp_path)
    with pytest.raises(CheckpointError, match=r"no tokenizer\.json.*model\.tokenizer\.adopt"):
        open_network(tmp_path)


def test_a_tokenizer_of_another_network_is_refused(tmp_path: Path):
    released.save(reader.network("cdlm").lm, tmp_path)
    train(["aaaa aaaa"], N_BYTES + len(SPECIALS) + 1, tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match="put the tokenizer there that the network"):
        open_network(tmp_path)
