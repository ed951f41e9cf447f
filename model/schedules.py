"""What changes over training: learning rate, noise, teacher forcing (paper §5.4.2, appendix G, J).

Each schedule is a function of the step or of `progress`, the share of the steps already done.
"""

import math

import torch

from model.diffusion import Rates, uniform_between
from model.train_config import AlphaConfig, InterleavingConfig, NoiseConfig, OptimConfig


def learning_rate(config: OptimConfig, step: int, n_steps: int) -> float:
    """Linear warm-up, stable phase, decay towards the floor; never zero itself."""
    warmup = round(config.warmup * n_steps)
    if step < warmup:
        return config.peak_lr * (step + 1) / (warmup + 1)
    decay = round(config.decay * n_steps)
    done = (step - (n_steps - decay)) / decay if decay else 0.0
    if done <= 0.0:
        return config.peak_lr
    match config.decay_shape:
        case "one_minus_sqrt":
            left = 1.0 - math.sqrt(done)
        case "linear":
            left = 1.0 - done
        case "cosine":
            left = 0.5 * (1.0 + math.cos(math.pi * done))
    return config.peak_lr * (config.floor + (1.0 - config.floor) * left)


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


def steers(config: InterleavingConfig, step: int, n_steps: int) -> bool:
    """Whether this step is one of a steering phase."""
    length, gap = round(config.phase * n_steps), round(config.gap * n_steps)
    since = step - round(config.warmup * n_steps)
    if since < 0 or length == 0:
        return False
    return since // (length + gap) < config.phases and since % (length + gap) < length


def noise(config: NoiseConfig, progress: float) -> Rates:
    """Rates of the blocks at this point of training.

    A Gaussian is cut to [low, high], so both ends carry the mass beyond them (method: linear
    motion, clipping and the width of `heavy` are our reading).
    """
    match config.kind:
        case "uniform":
            return uniform_between(config.low, config.high)
        case "moving_gaussian":
            moved = (config.centre_last - config.centre_first) * progress
            return _gaussian(config, config.centre_first + moved, config.deviation)
        case "heavy":
            return _gaussian(config, config.heavy_centre, config.heavy_deviation)


def _gaussian(config: NoiseConfig, centre: float, deviation: float) -> Rates:
    def rates(uniform: torch.Tensor) -> torch.Tensor:
        normal = torch.special.ndtri(uniform.clamp(1e-6, 1.0 - 1e-6))
        return (centre + deviation * normal).clamp(config.low, config.high)

    return rates
