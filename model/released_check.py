"""What a released checkpoint computes, against what was written down beside it.

`expected.safetensors` holds `input_ids` (B, T) and some of the tensors below, as the released
package computes them. Kept concepts are compared by their logits, strongest first, cut as there:
the logits here of the ids there, so that ties may swap and padding may not be kept.

Shape suffixes used in this file:
    B batch   T position   D width   V vocabulary   K concept of one head   k concepts kept
"""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from model.checkpoint import CheckpointError
from model.language_model import LanguageModel
from model.topk import CLAMP

EXPECTED = "expected.safetensors"
TOLERANCE = 1e-4


@torch.no_grad()
def differences(lm: LanguageModel, folder: Path) -> dict[str, float]:
    """The largest absolute difference per expected tensor; NaN where one side has NaN."""
    expected = _expected(folder)
    ids_BT = expected.pop("input_ids").long()
    longest, n_ids = lm.config.backbone.max_length, lm.config.backbone.vocab_size
    fit = ids_BT.ndim == 2 and 0 < ids_BT.shape[1] <= longest and ids_BT.min() >= 0
    if not fit or ids_BT.max() >= n_ids:
        raise CheckpointError(
            f"input_ids of {folder / EXPECTED} are {tuple(ids_BT.shape)}; they must be (batch, "
            f"position), {longest} positions at most, ids below {n_ids}"
        )
    ours = _outputs(lm, lm.hidden(ids_BT))
    foreign = sorted(expected.keys() - ours.keys())
    if foreign:
        raise CheckpointError(
            f"{folder / EXPECTED} expects {foreign}, which this network has not; it has "
            f"{sorted(ours)}"
        )
    return {name: ours[name](theirs) for name, theirs in expected.items()}


def _expected(folder: Path) -> dict[str, Tensor]:
    path = folder / EXPECTED
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {EXPECTED} to compare with; write it there")
    try:
        found = load_file(path)
    except SafetensorError as error:
        raise CheckpointError(f"{path} is damaged ({error}); copy it again") from error
    if "input_ids" not in found:
        raise CheckpointError(f"{path} has no input_ids; without them there is nothing to compute")
    return found


def _outputs(lm: LanguageModel, hidden_BTD: Tensor) -> dict[str, Callable[[Tensor], float]]:
    """How far each output is from an expected one."""

    def plainly(ours: Tensor) -> Callable[[Tensor], float]:
        return lambda theirs: _distance(ours, theirs)

    found = {"hidden": plainly(hidden_BTD), "logits": plainly(lm.logits(hidden_BTD))}
    if lm.bottleneck is None:
        return found
    parts = lm.bottleneck(hidden_BTD)
    found["composed"] = plainly(lm.composed(hidden_BTD))
    found["known_features"] = plainly(parts.known_BTD)
    found["unknown_features"] = plainly(parts.unknown_BTD)
    for head, logits_BTK in (
        ("known", lm.bottleneck.known.logits(hidden_BTD)),
        ("unknown", lm.bottleneck.unknown.logits(hidden_BTD)),
    ):
        found[f"{head}_topk_logits"] = _by_logits(logits_BTK)
        found[f"{head}_topk_indices"] = _by_ids(logits_BTK)
    return found


def _by_logits(logits_BTK: Tensor) -> Callable[[Tensor], float]:
    """The strongest logits of both, in their order."""

    def distance(theirs_BTk: Tensor) -> float:
        theirs_BTk = theirs_BTk.sort(dim=-1, descending=True).values
        return _distance(_strongest(logits_BTK, theirs_BTk.shape[-1]), theirs_BTk)

    return distance


def _by_ids(logits_BTK: Tensor) -> Callable[[Tensor], float]:
    """What our logits of the expected ids miss of our strongest ones."""

    def distance(ids_BTk: Tensor) -> float:
        n_concepts = logits_BTK.shape[-1]
        if ids_BTk.min() < 0 or ids_BTk.max() >= n_concepts:
            return float("inf")
        if any(len(set(ids)) < len(ids) for ids in ids_BTk.flatten(0, 1).tolist()):
            return float("inf")
        kept_BTk = logits_BTK.gather(-1, ids_BTk.long()).clamp(-CLAMP, CLAMP)
        kept_BTk = kept_BTk.sort(dim=-1, descending=True).values
        return _distance(_strongest(logits_BTK, ids_BTk.shape[-1]), kept_BTk)

    return distance


def _strongest(logits_BTK: Tensor, k: int) -> Tensor:
    k = min(k, logits_BTK.shape[-1])
    return logits_BTK.topk(k, dim=-1).values.clamp(-CLAMP, CLAMP)


def _distance(ours: Tensor, theirs: Tensor) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    return float((ours.double() - theirs.double()).abs().max())
