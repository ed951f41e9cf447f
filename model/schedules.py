"""What changes over training: learning rate, noise, teacher forcing (paper §5.4.2, appendix G, J).

Each schedule is a function of the step or of `progress`, the share of the steps already done.
"""

import math

import torch

from model.diffusion import Rates, uniform_between
from model.train_config import AlphaConfig, NoiseConfig, OptimConfig


def learning_rate(config: OptimConfig, step: int, n_steps: int) -> float:
    """Linear warm-up, stable phase, decay towards zero; never zero itself."""
    warmup = round(config.warmup * n_steps)
    if step < warmup:
        return config.peak_lr * (step + 1) / (warmup + 1)
    decay = round(config.decay * n_steps)
    done = (step - (n_steps - decay)) / decay if decay else 0.0
    if done <= 0.0:
        return config.peak_lr
    match config.decay_shape:
        case "one_minus_sqrt":
            return config.peak_lr * (1.0 - math.sqrt(done))
        case "linear":
            return config.peak_lr * (1.0 - done)
        case "cosine":
            return config.peak_lr * 0.5 * (1.0 + math.cos(math.pi * done))


def alpha(config: AlphaConfig, progress: float) -> float:
    """Probability of teacher forcing."""
    if progress <= config.move_from:
        return config.first
    if progress >= config.move_until:
        return config.last
    moved = (progress - config.move_from) / (config.move_until - config.move_from)
    if config.shape == "cosine":
        moved = 0.5 * (1.0 - math.cos(math.pi * moved))
    return config.first + (config.last - config.first) * moved


def noise(config: NoiseConfig, progress: float) -> Rates:
    """Rates of the blocks at this point of training.

    The moving Gaussian is cut to [low, high], so both ends carry the mass beyond them (method:
    linear motion and clipping are our reading).
    """
    if config.kind == "uniform":
        return uniform_between(config.low, config.high)
    centre = config.centre_first + (config.centre_last - config.centre_first) * progress

    def moving(uniform: torch.Tensor) -> torch.Tensor:
        normal = torch.special.ndtri(uniform.clamp(1e-6, 1.0 - 1e-6))
        return (centre + config.deviation * normal).clamp(config.low, config.high)

    return moving
