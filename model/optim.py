"""The optimiser: AdamW, whose decay spares what is looked up rather than computed with (app. G).

Decay would shrink a concept's embedding between the rare steps that teach it, and embeddings,
norms and biases have no business near zero; matrices of the backbone and predictors decay.
"""

import torch

from model.language_model import LanguageModel
from model.starting import bare
from model.train_config import OptimConfig

SPARED = ("embedding.weight", "embedding_KD", "embedding_UR", "embedding_RD", "embedding_UD")


def adamw(lm: LanguageModel, config: OptimConfig) -> torch.optim.AdamW:
    """AdamW over two groups: decayed and spared."""
    decayed: list[torch.nn.Parameter] = []
    spared: list[torch.nn.Parameter] = []
    # A parameter that ZeRO-3 has split has lost its shape, so the config is asked for it.
    shapes = bare(lm.config).named_parameters()
    for (name, parameter), (_, shape) in zip(lm.named_parameters(), shapes, strict=True):
        (spared if _is_spared(name, shape) else decayed).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": spared, "weight_decay": 0.0},
        ],
        lr=config.peak_lr,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The rate of the next step, in every group."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def _is_spared(name: str, parameter: torch.nn.Parameter) -> bool:
    return parameter.ndim < 2 or name.endswith(SPARED)
