"""What DeepSpeed is told: what is split over the ranks, what is moved, what is computed twice.

    settings(training, ZeroConfig(stage=2), world=8, low_precision=True)  ->  DeepSpeed's own config

Gradients are accumulated and reduced in float32 whatever the network computes in: sums in bfloat16
lose the small micro-batches. No torch and no DeepSpeed here.
"""

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from model.config import Config
from model.train_config import TrainingConfig

Offload = Literal["none", "optimizer", "optimizer_and_parameters"]


class ZeroConfig(Config):
    """How one optimisation is spread over its ranks. Nothing here changes what is learned."""

    stage: Literal[0, 1, 2, 3] = 1
    """What each rank holds a share of: nothing (0), optimiser states (1), also gradients (2), also
    weights (3). Every stage adds traffic: take the lowest that fits."""

    overlap: bool = False
    """Reduce gradients while the backward pass goes on. Holds the bucket more than once."""

    bucket_elements: PositiveInt = 200_000_000
    """Gradients reduced, and weights gathered, at a time. DeepSpeed's own 500,000,000 holds
    several gigabytes more."""

    whole_elements: NonNegativeInt = 100_000
    """At stage 3, tensors smaller than this stay whole on every rank: not worth a message each."""

    offload: Offload = "none"
    """What lives in the processor's memory between its uses: optimiser states, also weights."""

    activation_checkpointing: bool = False
    """Keep only what enters each layer and compute the layer again on the way back: memory of one
    layer instead of all, for a third more FLOPs."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        least = {"none": 0, "optimizer": 1, "optimizer_and_parameters": 3}[self.offload]
        if self.stage < least:
            raise ValueError(
                f"offload is {self.offload!r} at stage {self.stage}, but only what is split can be "
                f"moved; set stage to {least} or more, or offload to 'none'"
            )
        if self.overlap and self.stage == 0:
            raise ValueError(
                "overlap is on at stage 0, where DeepSpeed reduces all gradients at the end; "
                "turn it off, or set stage to 1 or more"
            )
        return self


def settings(
    training: TrainingConfig, zero: ZeroConfig, *, world: int, low_precision: bool
) -> dict[str, object]:
    """DeepSpeed's own config for this optimisation on `world` ranks."""
    if low_precision and zero.stage == 0:
        raise ValueError(
            "stage is 0 and dtype is bfloat16, where DeepSpeed accumulates gradients in bfloat16 "
            "alone; set stage to 1, or dtype to float32"
        )
    if training.compiled and zero.stage == 3:
        raise ValueError(
            "compiled is true at stage 3, whose weights come and go between the layers; "
            "set stage to 2 or less, or compiled to false"
        )
    return {
        "train_micro_batch_size_per_gpu": _sequences_at_once(training, world),
        "gradient_accumulation_steps": training.micro_batches,
        # At stage 0 the engine clips by itself: DeepSpeed would, but tells nobody the norm.
        "gradient_clipping": training.optim.clip_norm if zero.stage else 0.0,
        "bf16": {"enabled": low_precision},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        "zero_optimization": _zero_optimization(zero),
        # The optimiser is torch's on every device, so that all engines take the same steps.
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1_000_000_000,
    }


def _sequences_at_once(training: TrainingConfig, world: int) -> int:
    share = world * training.micro_batches
    if training.batch_sequences % share:
        raise ValueError(
            f"batch_sequences is {training.batch_sequences}, which {world} ranks with "
            f"{training.micro_batches} micro-batches each cannot share evenly; try "
            f"{-(-training.batch_sequences // share) * share}"
        )
    return training.batch_sequences // share


def _zero_optimization(zero: ZeroConfig) -> dict[str, object]:
    found: dict[str, object] = {
        "stage": zero.stage,
        "overlap_comm": zero.overlap,
        "contiguous_gradients": True,
        "reduce_bucket_size": zero.bucket_elements,
        "allgather_bucket_size": zero.bucket_elements,
    }
    if zero.stage == 3:
        found["stage3_prefetch_bucket_size"] = zero.bucket_elements
        found["stage3_param_persistence_threshold"] = zero.whole_elements
    if zero.offload != "none":
        found["offload_optimizer"] = {"device": "cpu"}
    if zero.offload == "optimizer_and_parameters":
        found["offload_param"] = {"device": "cpu"}
    return found
