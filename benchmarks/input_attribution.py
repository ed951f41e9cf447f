"""Input attribution against the straightforward way of the released design, on the same nodes.

reference  a group's whole sequence, tiled once for each of its targets, node by node; the full
           head at all positions
ours       up to the end of the open block, all nodes in batches; one row of the head for each
           target, the last layer at the positions read off, one forward for a group
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.measure import Contest, race
from model.config import BackboneConfig, LanguageModelConfig
from model.input_attribution import attribute
from model.input_attribution_config import InputAttributionConfig
from model.language_model import LanguageModel
from model.topk import TopConcepts
from model.trace import Trace

BLOCK, MASK = 64, 3


@dataclass(frozen=True)
class Case:
    """Groups of a text spread evenly over it, all of whose commits are explained."""

    vocab_size: int
    n_prompt: int
    n_new: int
    n_groups: int
    per_group: int
    n_nodes: int
    target: float


CASES = (Case(8_192, 64, 128, 8, 1, 8, target=1.7), Case(100_281, 64, 64, 8, 2, 4, target=6.0))


def contests() -> list[Contest]:
    """8 targets × 8 nodes on 192 tokens; 8 groups of 2 × 4 nodes on 128, with a large head."""
    return [_contest(case) for case in CASES]


def _contest(case: Case) -> Contest:
    lm = _network(case.vocab_size)
    trace, groups = _trace(lm, case)
    commits = [commit for group in groups for commit in trace.snapshot(group).commits_N.tolist()]
    config = InputAttributionConfig(tolerance=1e-12, max_evaluations=case.n_nodes)

    def ours() -> Tensor:
        return attribute(lm, trace, commits, config).weight_BT

    def reference() -> Tensor:
        return torch.cat([_straightforward(lm, trace, group, case.n_nodes) for group in groups])

    wanted_BT, found_BT = reference(), ours()
    error = float((wanted_BT - found_BT).abs().max() / wanted_BT.abs().max())
    return race(
        f"inputs of {len(commits)} tokens, V = {case.vocab_size:,}", reference, ours,
        agreement=f"weights within {error:.0e} of the largest", repeats=2, target=case.target,
    )  # fmt: skip


def _straightforward(lm: LanguageModel, trace: Trace, group: int, n_nodes: int) -> Tensor:
    """Weights of a group's commits (P, T): one node after the other, nothing left out."""
    seen = trace.snapshot(group)
    ids_T = torch.full_like(trace.ids_T, MASK)
    ids_T[: len(seen.ids_T)] = seen.ids_T
    token_P, rows_P = trace.token_N[seen.commits_N], torch.arange(len(seen.commits_N))
    embedded_PTD = lm.embedding(ids_T.expand(len(rows_P), -1)).detach()
    mask_D = lm.embedding.weight[MASK].detach()
    mean_PTD = torch.zeros_like(embedded_PTD)
    for node in range(n_nodes):
        share = node / (n_nodes - 1)
        path_PTD = (mask_D + share * (embedded_PTD - mask_D)).requires_grad_()
        hidden_PTD, _ = lm.backbone(path_PTD)
        logits_PTV = lm.unembed(hidden_PTD)
        chosen_P = logits_PTV[rows_P, seen.readout_N, token_P]
        (gradient_PTD,) = torch.autograd.grad(chosen_P.sum(), path_PTD)
        is_end = node in (0, n_nodes - 1)
        mean_PTD += gradient_PTD * (0.5 if is_end else 1.0) / (n_nodes - 1)
    return ((embedded_PTD - mask_D) * mean_PTD).sum(-1)


def _network(vocab_size: int) -> LanguageModel:
    backbone = BackboneConfig(
        vocab_size=vocab_size, width=256, n_layers=4, n_heads=8, n_kv_heads=4, mlp_width=1_024,
        max_length=1_024, block=BLOCK,
    )  # fmt: skip
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=None, bos_id=0, eos_id=1, pad_id=2,
        mask_id=MASK, end_of_chunk_id=4,
    )  # fmt: skip
    return LanguageModel(config, seed=0).eval()


def _trace(lm: LanguageModel, case: Case) -> tuple[Trace, list[int]]:
    """A text of random tokens, committed from left to right, and the groups to explain."""
    total, n_new = case.n_prompt + case.n_new, case.n_new
    draw = torch.Generator().manual_seed(0)
    ids_T = torch.randint(8, case.vocab_size, (total,), generator=draw)
    position_N = torch.arange(case.n_prompt, total)
    none = TopConcepts(torch.zeros(n_new, 0, dtype=torch.int64), torch.zeros(n_new, 0))
    state_ND, token_N = torch.zeros(n_new, lm.config.backbone.width), ids_T[position_N]
    group_N = torch.arange(n_new) // case.per_group
    groups = torch.linspace(0, int(group_N[-1]), case.n_groups).round().long().tolist()

    def told(logit_N: Tensor) -> Trace:
        return Trace(
            ids_T=ids_T, n_prompt=case.n_prompt, end=total, stopped=False, mask_id=MASK,
            group_N=group_N, position_N=position_N, token_N=token_N, logit_N=logit_N,
            confidence_N=torch.ones(n_new), state_ND=state_ND,
            seen_N=(position_N // BLOCK + 1) * BLOCK, readout_N=position_N,
            given_T=torch.arange(total) < case.n_prompt, steering=None, guidance=0.0,
            bare_ND=torch.zeros(n_new, 0), known=none, unknown=none,
        )  # fmt: skip

    logit_N = torch.zeros(n_new)
    for group in groups:
        seen = told(logit_N).snapshot(group)
        with torch.no_grad():
            state_PD = lm.hidden(seen.ids_T[None])[0, seen.readout_N]
            rows_PD = lm.head_VD[token_N[seen.commits_N]]
            logit_N[seen.commits_N] = (state_PD * rows_PD).sum(-1)
    return told(logit_N), groups
