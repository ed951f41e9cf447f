import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import released
from model.checkpoint import CheckpointError
from model.released_config import FormatError
from tests.model import tiny

GOLDEN = Path(__file__).parents[1] / "golden" / "released_checkpoint"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "copy"))


def test_two_tied_matrices_that_differ_are_refused(folder):
    weights = load_file(folder / WEIGHTS)
    weights["lm_head.weight"] = weights["transformer.tok_emb.weight"] + 1e-3
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(CheckpointError, match=r"one matrix under the names .*lm_head"):
        released.load(folder)


@pytest.mark.parametrize(
    ("file", "message"),
    [("config.json", "has no config.json"), (WEIGHTS, f"has neither {WEIGHTS} nor {INDEX}")],
)
def test_a_folder_without_a_file_is_refused_by_its_name(folder, file, message):
    (folder / file).unlink()
    with pytest.raises(CheckpointError, match=message):
        released.load(folder)


def test_a_folder_without_a_shard_is_refused_by_its_name(tmp_path):
    released.save(released.load(GOLDEN), tmp_path, shard_bytes=200_000)
    (tmp_path / "model-00002-of-00004.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"has no model-00002-of-00004.safetensors"):
        released.load(tmp_path)


def test_a_shard_of_other_weights_is_refused_by_its_name(folder):
    save_file({"spare": torch.zeros(2)}, folder / "model-00001-of-00002.safetensors")
    with pytest.raises(CheckpointError, match=r"also holds \['model-00001-of-00002.safetensors'"):
        released.load(folder)


def test_an_index_that_does_not_fit_its_shards_is_refused(tmp_path):
    released.save(released.load(GOLDEN), tmp_path, shard_bytes=200_000)
    index = json.loads((tmp_path / INDEX).read_text())
    del index["weight_map"]["transformer.ln_f.weight"]
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"not listed \['transformer.ln_f.weight'\]"):
        released.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("transformer.ln_f.weight", None, r"transformer.ln_f.weight is missing"),
        ("known_head.bias", torch.zeros(64), r"known_head.bias is foreign"),
        ("transformer.ln_f.weight", torch.zeros(63), r"ln_f.weight is \(63,\) where \(64,\)"),
        ("unknown_head.predictor_up.weight", torch.zeros(150, 16), r"\(150, 16\) where \(160, 1"),
        ("transformer.ln_f.weight", torch.zeros(64, dtype=torch.int32), r"ln_f.weight is I32"),
        ("transformer.ln_f.weight", torch.zeros(64, dtype=torch.float64), r"ln_f.weight is F64"),
        ("transformer.ln_f.weight", torch.zeros(64).half(), r"is F16 where the others are F32"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_refused_by_name(folder, name, tensor, message):
    weights = load_file(folder / WEIGHTS)
    weights.pop(name, None)
    if tensor is not None:
        weights[name] = tensor
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(CheckpointError, match=message):
        released.load(folder)


def test_a_truncated_file_is_refused(folder):
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="damaged"):
        released.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_attention_known": True}, "use_attention_known is true"),
        ({"use_attention_unknown": True}, "use_attention_unknown is true"),
        ({"use_unknown": False}, "use_unknown is false"),
        ({"use_bias": True}, "use_bias is true"),
        ({"use_rms_norm": False}, "use_rms_norm is false"),
        ({"mlp_type": "standard"}, 'mlp_type is "standard"'),
        ({"concept_dim": 32}, "concept_dim is 32 and n_embd 64"),
        ({"norm_order": "both"}, "norm_order is 'both'"),
        ({"sliding_window": 8}, "sliding_window is no setting of the format"),
        ({"concept": {"topk_known": 9}}, "concept.topk_known is 9 but topk_known is 8"),
        ({"concept": {"rank": 9}}, "concept.rank is no setting"),
        ({"n_head": 5}, "n_heads is 5"),
        ({"mask_token_id": 509}, "must differ"),
        ({"instruct": True}, "room for the three chat tokens"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused_by_name(folder, changes, message):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(CheckpointError, match=message):
        released.load(folder)


def test_a_config_without_a_key_is_refused_by_its_name(folder):
    config = json.loads((folder / "config.json").read_text())
    del config["mask_token_id"], config["n_layers"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"n_layers is missing.*mask_token_id is missing"):
        released.load(folder)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("cdlm_concept", {"known_bias": True, "rank": 16}, "known_bias is true"),
        ("cdlm_concept", {"known_bias": False, "rank": 15}, "rank is 15.* takes 16 to 1024"),
        ("ar", {}, r"attention is causal \(family ar\)"),
        ("ar_concept", {"known_bias": False, "rank": 16}, r"attention is causal"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_by_name(tmp_path, family, changes, message):
    with pytest.raises(FormatError, match=message):
        released.save(tiny.lm(family, **changes), tmp_path)
    assert not list(tmp_path.iterdir())


def test_verify_says_what_it_lacks(folder, capsys):
    (folder / "expected.safetensors").unlink()
    with pytest.raises(SystemExit) as stopped:
        released.main(["verify", str(folder)])
    assert stopped.value.code == 2
    assert "has no expected.safetensors to compare with" in capsys.readouterr().err
