"""Exact cached generation against recomputing everything at every step."""

import torch
from torch import Tensor

from benchmarks.measure import Contest, race
from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig

N_PROMPT, N_NEW = 64, 128
_NEVER = (0, 2, 3)
"""BOS, padding and the mask are never written."""


def contest() -> Contest:
    """64 + 128 tokens, greedy, one a step; width 256, vocabulary 8,192, 1,000 concepts."""
    lm = _network()
    draw = torch.Generator().manual_seed(0)
    prompt_P = torch.randint(8, 8_192, (N_PROMPT,), generator=draw)

    def ours() -> list[int]:
        return generate(lm, prompt_P[None], SamplingConfig(n_new=N_NEW))[0].generated

    def reference() -> list[int]:
        return _recomputed(lm, prompt_P)

    wanted, found = reference(), ours()
    same = sum(a == b for a, b in zip(wanted, found, strict=False))
    return race(
        f"generate {N_NEW} after {N_PROMPT}", reference, ours,
        agreement=f"{same} of {len(wanted)} tokens equal", repeats=2,
    )  # fmt: skip


def _network() -> LanguageModel:
    backbone = BackboneConfig(
        vocab_size=8_192, width=256, n_layers=4, n_heads=8, n_kv_heads=4, mlp_width=1_024,
        max_length=1_024, block=64,
    )  # fmt: skip
    bottleneck = BottleneckConfig(n_known=1_000, n_unknown=3_000, rank=64)
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=bottleneck, bos_id=0, eos_id=1, pad_id=2, mask_id=3,
        end_of_chunk_id=4,
    )  # fmt: skip
    return LanguageModel(config, seed=0).eval()


@torch.no_grad()
def _recomputed(lm: LanguageModel, prompt_P: Tensor) -> list[int]:
    """What a generator does that keeps nothing from one step to the next."""
    block, total = lm.config.backbone.block, N_PROMPT + N_NEW
    ids_T = torch.cat([prompt_P, torch.full((total - N_PROMPT,), lm.config.mask_id)])
    for start in range(N_PROMPT // block * block, total, block):
        window = slice(start, min(start + block, total))
        while (ids_T[window] == lm.config.mask_id).any():
            hidden_BTD = lm.hidden(ids_T[None])
            state_BTD = lm.concepts(hidden_BTD).total_BTD
            logits_TV = lm.unembed(state_BTD)[0, window]
            logits_TV[:, list(_NEVER)] = -torch.inf
            certain_T = logits_TV.softmax(-1).max(-1).values
            certain_T[ids_T[window] != lm.config.mask_id] = -1.0
            at = int(certain_T.argmax())
            ids_T[start + at] = logits_TV[at].argmax()
            if int(ids_T[start + at]) == lm.config.eos_id:
                return ids_T[N_PROMPT : start + at + 1].tolist()
    return ids_T[N_PROMPT:].tolist()
