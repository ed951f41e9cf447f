import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import checkpoint, released
from model.checkpoint import CheckpointError
from model.language_model import LanguageModel
from model.released_check import differences
from tests.model import released_reference, tiny
from tests.model.released_reference import SETTINGS

GOLDEN = Path(__file__).parents[1] / "golden" / "released_checkpoint"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

CASES = {
    "none of the released choices": {
        "norm_order": "pre", "n_kv_heads": 1, "use_qk_norm": False, "use_rope": False,
        "clip_qkv": None, "weight_sharing": False, "intermediate_size": 77,
        "factorize_unknown": False, "use_epsilon_correction": False, "pad_multiple": 1,
    },
    "pre-norm": {"norm_order": "pre"},
    "one KV head": {"n_kv_heads": 1},
    "as many KV heads as heads": {"n_kv_heads": None},
    "no QK-norm": {"use_qk_norm": False},
    "no rotary positions": {"use_rope": False},
    "another rotary base": {"rope_base": 100.0},
    "no clip": {"clip_qkv": None},
    "a tight clip": {"clip_qkv": 0.5},
    "another eps": {"norm_eps": 0.1},
    "an untied head": {"weight_sharing": False},
    "an MLP width of its own": {"intermediate_size": 77},
    "a dense unknown head": {"factorize_unknown": False},
    "no residual": {"use_epsilon_correction": False},
    "a block of one": {"diff_block_size": 1},
    "a block beyond the sequence": {"diff_block_size": 64},
    "no spare rows": {"pad_multiple": 1},
    "spare rows to 64": {"pad_multiple": 64},
    "no top-k": {"topk_known": None, "apply_topk_to_unknown": False},
    "more features than the loss took": {"topk_known": 3, "topk_known_features": 8},
    "features as the loss took": {"topk_known": 3, "topk_known_features": None},
    "a top-k beyond the concepts": {
        "topk_known": 90, "topk_known_features": 90, "unknown_topk": 90,
    },
    "one head": {"n_head": 1, "n_kv_heads": 1, "n_embd": 34, "concept_dim": 34},
    "one layer": {"n_layers": 1},
    "no concepts": {"interpretable": False},
    "no concepts, pre-norm, untied": {
        "interpretable": False, "norm_order": "pre", "weight_sharing": False,
    },
}  # fmt: skip


def largest_difference(folder: Path, settings: dict, length: int = 13) -> float:
    """Between the reference and `load`, over every output of two sequences, one half masked."""
    weights = released_reference.checkpoint(folder, settings)
    ids_BT = torch.randint(0, 32, (2, length), generator=torch.Generator().manual_seed(1))
    ids_BT[0, length // 2 :] = settings["mask_token_id"]
    rows = [released_reference.forward(settings, weights, row.numpy()) for row in ids_BT]
    expected = {
        name: torch.stack([torch.from_numpy(row[name]) for row in rows]) for name in rows[0]
    }
    expected = {name: tensor.float() for name, tensor in expected.items()}
    save_file({**expected, "input_ids": ids_BT}, folder / "expected.safetensors")
    return max(differences(released.load(folder), folder).values())


def golden_copy(folder: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, folder / "copy"))


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def releasable(**changes: object) -> LanguageModel:
    return tiny.lm(**{"known_bias": False, "rank": 16, **changes})


def test_the_released_package_and_this_network_compute_the_same():
    found = differences(released.load(GOLDEN), GOLDEN)
    assert len(found) == 9
    assert max(found.values()) < 2e-5


def test_the_reference_of_these_tests_agrees_with_the_released_package():
    settings = json.loads((GOLDEN / "config.json").read_text())
    weights, expected = load_file(GOLDEN / WEIGHTS), load_file(GOLDEN / "expected.safetensors")
    found = released_reference.forward(settings, weights, expected["input_ids"][0, :32].numpy())
    assert len(found) == 5
    for name, ours in found.items():
        theirs = expected[name][0, :32].double()
        torch.testing.assert_close(torch.from_numpy(ours), theirs, atol=2e-5, rtol=0)


@pytest.mark.parametrize("case", ["none of the released choices", "no top-k"])
def test_a_checkpoint_computes_what_the_formulas_say(tmp_path, case):
    assert largest_difference(tmp_path, {**SETTINGS, **CASES[case]}) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 13, 20, 24])
@pytest.mark.parametrize("case", CASES)
def test_every_option_computes_what_the_formulas_say(tmp_path, case, length):
    assert largest_difference(tmp_path, {**SETTINGS, **CASES[case]}, length) < 1e-4


@pytest.mark.parametrize("changes", [{}, CASES["none of the released choices"]])
@pytest.mark.parametrize("shard_bytes", [10**9, 30_000, 1])
def test_what_is_saved_loads_as_it_was(tmp_path, changes, shard_bytes):
    (tmp_path / "given").mkdir()
    released_reference.checkpoint(tmp_path / "given", {**SETTINGS, **changes})
    lm = released.load(tmp_path / "given")
    released.save(lm, tmp_path / "saved", shard_bytes=shard_bytes)
    again = released.load(tmp_path / "saved")
    assert again.config == lm.config
    pairs = zip(lm.named_parameters(), again.named_parameters(), strict=True)
    assert all(one == other and torch.equal(a, b) for (one, a), (other, b) in pairs)
    assert (tmp_path / "saved" / INDEX).exists() == (shard_bytes < 10**9)


def test_a_saved_checkpoint_has_the_released_tensors_and_spare_rows_of_zeros(tmp_path):
    released.save(released.load(GOLDEN), tmp_path)
    given, saved = load_file(GOLDEN / WEIGHTS), load_file(tmp_path / WEIGHTS)
    assert saved.keys() == given.keys()
    n_rows = {f"known_head.concept_{table}.weight": 50 for table in ("embedding", "predictor")}
    n_rows |= {f"unknown_head.{table}.weight": 150 for table in ("embedding_coef", "predictor_up")}
    for name, tensor in saved.items():
        wanted = given[name].clone()
        wanted[n_rows.get(name, len(wanted)) :] = 0.0
        assert torch.equal(tensor, wanted), name


def test_the_saved_config_says_what_the_given_one_says_and_says_it_in_both_forms(tmp_path):
    released.save(released.load(GOLDEN), tmp_path)
    given = json.loads((GOLDEN / "config.json").read_text())
    saved = json.loads((tmp_path / "config.json").read_text())
    nested = saved.pop("concept")
    same = given.keys() - {"intermediate_size", "concept_block_size"}
    assert {key: saved[key] for key in same} == {key: given[key] for key in same}
    assert nested.pop("block_size") == saved["concept_block_size"]
    assert nested.items() <= saved.items()


def test_the_nested_form_alone_opens_the_same_network(tmp_path):
    released.save(released.load(GOLDEN), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    flat = config["concept"].keys() - {"block_size"} | {"concept_block_size"}
    nested = {key: value for key, value in config.items() if key not in flat}
    (tmp_path / "config.json").write_text(json.dumps(nested))
    assert released.load(tmp_path).config == released.load(GOLDEN).config
    assert nested["block_size"] != nested["concept"]["block_size"]


@pytest.mark.parametrize("names", [("lm_head",), ("tok_emb", "lm_head")])
def test_the_tied_matrix_is_found_by_either_name_or_by_both(tmp_path, names):
    folder = golden_copy(tmp_path)
    weights = load_file(folder / WEIGHTS)
    matrix = weights.pop("transformer.tok_emb.weight")
    weights |= {f"transformer.{name}.weight": matrix.clone() for name in names}
    save_file(weights, folder / WEIGHTS)
    assert max(differences(released.load(folder), folder).values()) < 2e-5


def test_shards_of_an_earlier_save_do_not_stay(tmp_path):
    lm = released.load(GOLDEN)
    released.save(lm, tmp_path, shard_bytes=100_000)
    released.save(lm, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", WEIGHTS]


def test_the_instruct_vocabulary_has_three_tokens_after_the_mask(tmp_path):
    released.save(releasable(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    chat = [config[key] for key in ("start_header_id", "end_header_id", "eot_id")]
    assert (config["instruct"], chat) == (True, [37, 38, 39])
    assert released.load(tmp_path).config == releasable().config
    change_config(tmp_path, eot_id=40)
    with pytest.raises(CheckpointError, match=r"must follow the mask: \(37, 38, 39\)"):
        released.load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_loads_as_float32(tmp_path, dtype):
    folder = golden_copy(tmp_path)
    weights = {name: tensor.to(dtype) for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(weights, folder / WEIGHTS)
    lm = released.load(folder)
    assert {parameter.dtype for parameter in lm.parameters()} == {torch.float32}
    assert torch.equal(lm.embedding.weight, weights["transformer.tok_emb.weight"].float())
    released.save(lm.to(dtype), tmp_path / "saved")
    again = load_file(tmp_path / "saved" / WEIGHTS)["transformer.ln_f.weight"]
    assert torch.equal(again, weights["transformer.ln_f.weight"])


def test_the_digest_of_the_library_travels_in_the_config(tmp_path):
    released.save(releasable(), tmp_path, library_digest="5e3a")
    assert json.loads((tmp_path / "config.json").read_text())["library_digest"] == "5e3a"
    assert released.load(tmp_path).config == releasable().config


def test_a_cut_concept_is_ranked_by_what_was_cut(tmp_path):
    """The released package sees only the cut logits, of which these two are equal."""
    folder = golden_copy(tmp_path)
    change_config(folder, topk_known=1, topk_known_features=1)
    lm = released.load(folder)
    hidden = torch.ones(64)
    with torch.no_grad():
        lm.concepts.known.predictor_KD.zero_()
        lm.concepts.known.predictor_KD[[3, 9]] = torch.tensor([[0.5], [0.25]])
    top = lm.concepts.known.top(hidden)
    assert lm.concepts.known.logits(hidden)[[3, 9]].tolist() == [32.0, 16.0]
    assert (top.ids.tolist(), top.activations.tolist()) == ([3], [pytest.approx(1 / (1 + 3.06e-7))])


def test_verify_prints_each_difference_and_fails_above_the_tolerance(tmp_path, capsys):
    folder = golden_copy(tmp_path)
    assert released.main(["verify", str(folder)]) == 0
    assert capsys.readouterr().out.count("ok") == 9
    expected = load_file(folder / "expected.safetensors")
    expected["logits"][1, 2, 3] += 2e-4
    save_file(expected, folder / "expected.safetensors")
    assert released.main(["verify", str(folder)]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if "above 0.0001" in line]
    assert len(failed) == 1
    assert failed[0].startswith("logits")


def test_verify_takes_swapped_ties_but_no_other_concept(tmp_path):
    folder = golden_copy(tmp_path)
    expected = load_file(folder / "expected.safetensors")
    expected["known_topk_indices"] = expected["known_topk_indices"].flip(-1)
    save_file(expected, folder / "expected.safetensors")
    assert differences(released.load(folder), folder)["known_topk_indices"] == 0.0
    kept = expected["known_topk_indices"][0, 0]
    kept[0] = next(concept for concept in range(50) if concept not in kept.tolist())
    save_file(expected, folder / "expected.safetensors")
    assert differences(released.load(folder), folder)["known_topk_indices"] > 1e-4


def made_by_training(folder):
    """A folder as training writes it."""
    folder.mkdir()
    lm = tiny.lm(known_bias=False, rank=16)
    checkpoint.save(lm, folder)
    (folder / "concepts.json").write_text(json.dumps({"digest": "3fa91c", "concepts": []}))
    (folder / "tokenizer.json").write_text("{}")
    return lm


def test_a_checkpoint_of_a_run_is_exported_with_its_library_and_its_tokenizer(tmp_path, capsys):
    lm = made_by_training(tmp_path / "run")
    assert released.main(["export", str(tmp_path / "run"), str(tmp_path / "out")]) == 0
    assert "with the library 3fa91c" in capsys.readouterr().out
    opened = released.load(tmp_path / "out")
    torch.testing.assert_close(opened(tiny.ids()), lm(tiny.ids()))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["library_digest"] == "3fa91c"
    for name in ("concepts.json", "tokenizer.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_an_export_in_half_the_bytes_says_so_in_its_config(tmp_path):
    made_by_training(tmp_path / "run")
    released.main(["export", str(tmp_path / "run"), str(tmp_path / "out"), "--dtype", "bfloat16"])
    assert {one.dtype for one in load_file(tmp_path / "out" / WEIGHTS).values()} == {torch.bfloat16}


@pytest.mark.parametrize("missing", ["concepts.json", "tokenizer.json", "weights.safetensors"])
def test_an_export_of_half_a_checkpoint_is_refused(tmp_path, capsys, missing):
    made_by_training(tmp_path / "run")
    (tmp_path / "run" / missing).unlink()
    with pytest.raises(SystemExit) as ended:
        released.main(["export", str(tmp_path / "run"), str(tmp_path / "out")])
    assert ended.value.code == 2
    assert f"has no {missing}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_export_of_what_the_format_cannot_hold_is_refused_with_the_reason(tmp_path, capsys):
    made_by_training(tmp_path / "run")
    checkpoint.save(tiny.lm(), tmp_path / "run")
    with pytest.raises(SystemExit):
        released.main(["export", str(tmp_path / "run"), str(tmp_path / "out")])
    assert "known_bias is true" in capsys.readouterr().err
