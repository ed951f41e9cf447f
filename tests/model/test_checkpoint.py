import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import checkpoint
from model.checkpoint import CheckpointError
from tests.model import tiny


@pytest.mark.parametrize("family", ["ar", "cdlm_concept"])
def test_a_network_comes_back_as_it_was(tmp_path, family):
    network = tiny.lm(family)
    checkpoint.save(network, tmp_path)
    again = checkpoint.load(tmp_path)
    assert torch.equal(again(tiny.ids()), network(tiny.ids()))
    assert again.config == network.config
    assert not again.training


def test_the_same_network_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        checkpoint.save(tiny.lm(), tmp_path / name)
    one, two = ((tmp_path / name / checkpoint.WEIGHTS).read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config.json, so it is no checkpoint"):
        checkpoint.load(tmp_path)


def test_a_truncated_file_is_refused(tmp_path):
    checkpoint.save(tiny.lm(), tmp_path)
    weights = tmp_path / checkpoint.WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="damaged or older"):
        checkpoint.load(tmp_path)


def test_foreign_missing_and_misshapen_tensors_are_named(tmp_path):
    checkpoint.save(tiny.lm(), tmp_path)
    weights = load_file(tmp_path / checkpoint.WEIGHTS)
    del weights["backbone.norm.weight"]
    weights["spare"] = torch.zeros(2)
    weights["embedding.weight"] = torch.zeros(3, 4)
    save_file(weights, tmp_path / checkpoint.WEIGHTS)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(tmp_path)
    for name in ("missing ['backbone.norm.weight']", "foreign ['spare']", "(3, 4) instead of"):
        assert name in str(caught.value)


def test_an_unknown_key_in_the_config_is_refused(tmp_path):
    checkpoint.save(tiny.lm(), tmp_path)
    path = tmp_path / checkpoint.CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), "dropout": 0.1}))
    with pytest.raises(CheckpointError, match="dropout"):
        checkpoint.load(tmp_path)
