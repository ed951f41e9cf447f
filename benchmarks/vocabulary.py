"""The vocabulary head at masked rows, by chunks, against a full head at every position.

A training step, backbone included: 2 × 256 tokens, width 256, 4 layers, about half of the tokens
masked, with vocabularies of 100,281 and 8,192.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.measure import Contest, race
from model.config import BackboneConfig, LanguageModelConfig
from model.language_model import LanguageModel
from model.vocabulary import nats

LENGTH, WIDTH, SHARE = 256, 256, 0.55


def contests() -> Iterator[Contest]:
    """One a vocabulary."""
    for vocab_size, target in ((100_281, 1.4), (8_192, 1.1)):
        yield _contest(vocab_size, target)


def _contest(vocab_size: int, target: float) -> Contest:
    backbone = BackboneConfig(
        vocab_size=vocab_size, width=WIDTH, n_layers=4, n_heads=8, n_kv_heads=4, mlp_width=1_024,
        max_length=LENGTH, block=64,
    )  # fmt: skip
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=None, bos_id=0, eos_id=1, pad_id=2, mask_id=3,
        end_of_chunk_id=4,
    )  # fmt: skip
    lm = LanguageModel(config, seed=0)
    draw = torch.Generator().manual_seed(0)
    ids_BT = torch.randint(8, vocab_size, (2, LENGTH), generator=draw)
    masked_BT = torch.rand(2, LENGTH, generator=draw) < SHARE
    noisy_BT = ids_BT.masked_fill(masked_BT, config.mask_id)
    share_N = torch.full((int(masked_BT.sum()),), 1.0 / int(masked_BT.sum()))

    def reference() -> tuple[Tensor, ...]:
        logits_BTV = lm(noisy_BT)
        nll_BT = functional.cross_entropy(
            logits_BTV.flatten(0, 1), ids_BT.flatten(), reduction="none"
        )
        loss = (nll_BT * masked_BT.flatten()).sum() / masked_BT.sum()
        return loss, *torch.autograd.grad(loss, list(lm.parameters()))

    def ours() -> tuple[Tensor, ...]:
        loss = nats(lm.head_VD, lm.hidden(noisy_BT)[masked_BT], ids_BT[masked_BT], share_N).loss
        return loss, *torch.autograd.grad(loss, list(lm.parameters()))

    expected, found = reference(), ours()
    off = abs(float((expected[0] - found[0]).detach())) / float(expected[0].detach())
    worst = max(
        float((one - other).norm() / one.norm())
        for one, other in zip(expected[1:], found[1:], strict=True)
    )
    del expected, found
    return race(
        f"step, {len(share_N)} of {2 * LENGTH} masked, V {vocab_size:,}", reference, ours,
        agreement=f"loss within {off:.0e}, gradients {worst:.0e}", repeats=3, target=target,
    )  # fmt: skip
