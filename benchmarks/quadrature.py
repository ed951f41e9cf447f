"""Rules of integration for input attribution on a trained checkpoint: ours against Captum's.

python -m benchmarks.quadrature CHECKPOINT TOKENS [TEXTS]

For each rule and number of passes: what the weights leave of the effect (mean |Σ A − gap| over mean
|gap|), and how far single weights are from those of 256 panels (mean L1 error of a target). The two
plain passes that the check of completeness needs are counted, one where the rule has the other end.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from captum.attr import IntegratedGradients
from torch import Tensor

from components import prompts
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model.input_attribution import attribute
from model.input_attribution_config import InputAttributionConfig
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace

PANELS = (15, 30, 60)
EXTRA = {"riemann_right": 1, "riemann_middle": 2, "riemann_trapezoid": 2, "gausslegendre": 2}
_SAMPLING = SamplingConfig(n_new=64, temperature=0.7, top_p=0.9, repetition_penalty=1.2)


@dataclass(frozen=True)
class Target:
    """One commit, and its weights by a rule fine enough to be the truth."""

    trace: Trace
    commit: int
    weight_T: Tensor
    gap: float


def main(checkpoint: Path, tokens: Path, n_texts: int) -> None:
    """Print one line a rule."""
    lm = checkpoints.load(checkpoint)
    targets = _targets(lm, TokenStream(tokens), n_texts)
    print(f"{len(targets)} targets of {n_texts} texts")
    for panels in PANELS:
        _tell("ours", panels + 1, targets, partial(_ours, lm, panels))
        for method, extra in EXTRA.items():
            theirs = partial(_captum, lm, method, panels + 1 - extra)
            _tell(f"Captum {method}", panels + 1, targets, theirs)


def _targets(lm: LanguageModel, stream: TokenStream, n_texts: int) -> list[Target]:
    lengths = np.linspace(24, 48, n_texts).round().astype(int).tolist()
    special, found = stream.tokenizer.specials, []
    for number, prompt in enumerate(prompts.openings(stream, lengths, "test", 0)):
        (trace,) = generate(
            lm, prompt.row, _SAMPLING, sample_ids=[number],
            stop_ids=[special.end_of_chunk_id, special.end_of_turn_id],
        )  # fmt: skip
        inside = (trace.position_N < trace.end).nonzero().squeeze(-1).tolist()
        for commit in (inside[len(inside) // 6], inside[5 * len(inside) // 6]):
            truth = attribute(lm, trace, [commit], _fixed(256))
            found.append(Target(trace, commit, truth.weight_BT[0], float(truth.gap_B)))
    return found


def _fixed(panels: int) -> InputAttributionConfig:
    return InputAttributionConfig(tolerance=1e-12, max_evaluations=panels + 1)


def _ours(lm: LanguageModel, panels: int, target: Target) -> Tensor:
    return attribute(lm, target.trace, [target.commit], _fixed(panels)).weight_BT[0]


def _captum(lm: LanguageModel, method: str, nodes: int, target: Target) -> Tensor:
    trace, commit = target.trace, target.commit
    seen = trace.snapshot(int(trace.group_N[commit]))
    embedded_1TD = lm.embedding(seen.ids_T[None]).detach()
    mask_1TD = lm.embedding.weight[trace.mask_id].detach().expand_as(embedded_1TD).contiguous()

    def logit(path_JTD: Tensor) -> Tensor:
        state_JD = lm.composed(lm.backbone(path_JTD)[0][:, trace.readout_N[commit]])
        return state_JD @ lm.head_VD[trace.token_N[commit]]

    found_1TD = IntegratedGradients(logit).attribute(
        embedded_1TD, mask_1TD, n_steps=nodes, method=method, internal_batch_size=32
    )
    weight_T = torch.zeros(len(trace.ids_T))
    weight_T[: len(seen.ids_T)] = found_1TD[0].detach().sum(-1)
    return weight_T


def _tell(name: str, passes: int, targets: list[Target], rule: Callable[[Target], Tensor]) -> None:
    missed, off, gaps = [], [], []
    for target in targets:
        weight_T = rule(target)
        missed.append(abs(float(weight_T.sum()) - target.gap))
        gaps.append(abs(target.gap))
        error_T = (weight_T - target.weight_T).abs()
        off.append(float(error_T.sum() / target.weight_T.abs().sum()))
    print(
        f"{name:<26} {passes:>3} passes   missed {sum(missed) / sum(gaps):7.2%}   "
        f"weights off {np.mean(off):7.2%}",
        flush=True,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 10)
