"""What a recipe takes before anything runs: parameters, FLOPs, memory, hours, money. No torch.

    plan(recipe, hardware="h100", ranks=64, zero=3)  ->  Plan

Parameters and FLOPs are exact for the expected number of concepts, by the paper's convention
(`model.accounting`); memory follows the formulas of `model.memory`; hours are those FLOPs at the
utilisation of the device, a range; money is hours at its price.
"""

from dataclasses import dataclass
from typing import Literal

from components.finetuning.config import FinetuneConfig
from components.midtraining.config import MidtrainConfig
from components.scaling import ladder as ladders
from components.training.config import TrainConfig
from model import accounting, memory
from model.accounting import Parameters, Work
from model.config import LanguageModelConfig
from model.memory import Memory, MicroBatch, Precision
from model.tokenizer import SPECIALS, SpecialIds
from model.train_config import NoiseConfig, TrainingConfig
from model.zero_config import ZeroConfig, settings
from pipelines.cost import Cost, Place
from pipelines.hardware import Device, device
from pipelines.recipe import Recipe

Zero = Literal[0, 1, 2, 3]
Optimisation = TrainConfig | MidtrainConfig | FinetuneConfig
Verdict = Literal["fits", "fits with activation checkpointing", "does not fit"]
ZERO_STAGES: tuple[Zero, ...] = (0, 1, 2, 3)


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of one rank at one ZeRO stage, against what the device has."""

    zero_stage: Zero
    is_chosen: bool
    memory: Memory
    total_bytes: int
    total_bytes_with_checkpointing: int
    """Where only the layers' inputs are kept (activation checkpointing)."""

    verdict: Verdict


@dataclass(frozen=True)
class StagePlan:
    """One optimisation of the recipe."""

    name: str
    parameters: Parameters
    n_parameters: int
    n_tokens: int
    n_steps: int
    micro_batch_tokens: int
    """Tokens that a rank computes at a time."""

    computed_flops: float
    """What a step computes where head and concepts see asked tokens alone and the known sum is
    differentiated where the residual was dropped; what is computed twice counts twice."""

    cost: Cost
    checkpoint_bytes: int
    resumable_checkpoint_bytes: int
    memory: tuple[MemoryPlan, ...]


@dataclass(frozen=True)
class LadderPlan:
    """All runs of the scaling study, one process each."""

    n_points: int
    largest_point: str
    largest_point_bytes: int
    largest_point_fits: bool
    cost: Cost


@dataclass(frozen=True)
class Plan:
    """A recipe on named hardware."""

    recipe: str
    hardware: str
    device: Device
    ranks: int
    n_devices: int
    expected_concepts: int
    stages: tuple[StagePlan, ...]
    ladder: LadderPlan
    total: Cost

    @property
    def fits(self) -> bool:
        """Whether every stage fits as the recipe, or the command, would have it."""
        chosen = [row for stage in self.stages for row in stage.memory if row.is_chosen]
        return all(row.verdict != "does not fit" for row in chosen)


def plan(
    recipe: Recipe, *, hardware: str = "", ranks: int | None = None, zero: Zero | None = None
) -> Plan:
    """Count a recipe. Hardware, ranks and ZeRO stage are the recipe's own where none is named."""
    name = hardware or recipe.hardware
    network = _network(recipe)
    stages: list[StagePlan] = []
    for task, training, config in _optimisations(recipe):
        place = _place(device(name), config, ranks, zero)
        at_once = _sequences_at_once(training, config.ranks.ranks, place.ranks.ranks)
        _check(training, place, at_once)
        stages.append(_stage(task, network, training, place, at_once))
    place = _place(device(name), recipe.training, ranks, zero)
    ladder = _ladder(recipe, place)
    total = ladder.cost
    for stage in stages:
        total += stage.cost
    return Plan(
        recipe=recipe.name, hardware=name, device=place.device, ranks=place.ranks.ranks,
        n_devices=place.n_devices, expected_concepts=recipe.expected_concepts,
        stages=tuple(stages), ladder=ladder, total=total,
    )  # fmt: skip


def zero_stage(number: int) -> Zero | None:
    """The stage of this number; None for −1, where the recipe has the word."""
    return next((stage for stage in ZERO_STAGES if stage == number), None)


def _optimisations(recipe: Recipe) -> list[tuple[str, TrainingConfig, Optimisation]]:
    """The stages that train the recipe's network, in their order."""
    found: list[tuple[str, TrainingConfig, Optimisation]] = [
        ("train", recipe.training.training, recipe.training),
        ("midtrain", recipe.midtraining.training, recipe.midtraining),
    ]
    if recipe.finetuning is not None:
        found.append(("finetune", recipe.finetuning.training, recipe.finetuning))
    return found


def _place(on: Device, config: Optimisation, ranks: int | None, zero: Zero | None) -> Place:
    given = config.ranks if ranks is None else config.ranks.model_copy(update={"ranks": ranks})
    split = config.zero if zero is None else _at_stage(config.zero, zero)
    return Place(on, given, split)


def _at_stage(zero: ZeroConfig, stage: Zero) -> ZeroConfig:
    """The same at another stage, less what that stage cannot do."""
    overlap = zero.overlap and stage > 0
    offload = "none" if stage == 0 or (stage < 3 and "param" in zero.offload) else zero.offload
    return zero.model_copy(update={"stage": stage, "overlap": overlap, "offload": offload})


def _sequences_at_once(training: TrainingConfig, planned: int, ranks: int) -> int:
    """Sequences of a micro-batch. Other ranks than planned take more or fewer micro-batches."""
    share = planned * training.micro_batches
    at_once = max(1, training.batch_sequences // share)
    if training.batch_sequences % (ranks * at_once):
        most = training.batch_sequences // at_once
        fit = [n for n in range(1, most + 1) if most % n == 0]
        near = min(fit, key=lambda n: abs(n - ranks))
        raise ValueError(
            f"{ranks} ranks cannot share a batch of {training.batch_sequences} sequences evenly, "
            f"{at_once} at a time; try --ranks {near}"
        )
    return at_once


def _check(training: TrainingConfig, place: Place, at_once: int) -> None:
    """Raise what DeepSpeed's settings would raise when the ranks start."""
    ranks = place.ranks.ranks
    n_parts = max(1, training.batch_sequences // (ranks * at_once))
    # Stage 3 cannot compile layers: what it takes is counted all the same, a run says so.
    compiled = training.compiled and place.zero.stage < 3
    shared = training.model_copy(update={"micro_batches": n_parts, "compiled": compiled})
    low_precision = _precision(training) == memory.BFLOAT16
    settings(shared, place.zero, world=ranks, low_precision=low_precision)


def _network(recipe: Recipe) -> LanguageModelConfig:
    return accounting.padded(
        recipe.training.network.language_model(
            vocab_size=recipe.packing.vocab_size,
            n_known=recipe.expected_concepts,
            specials=_specials(recipe.packing.vocab_size),
        )
    )


def _specials(vocab_size: int) -> SpecialIds:
    """Special tokens close every vocabulary."""
    return SpecialIds(*range(vocab_size - len(SPECIALS), vocab_size))


def _stage(
    name: str, network: LanguageModelConfig, training: TrainingConfig, place: Place, at_once: int
) -> StagePlan:
    counted = accounting.parameters(network)
    n_tokens = training.n_steps * training.tokens_per_step
    work = Work(
        asked=_mean_rate(training.noise),
        known_gradient=training.objective.residual_dropout,
        activations="top_k" if training.objective.sparse_from == 0.0 else "dense",
        backbone_forwards=2 if place.zero.activation_checkpointing else 1,
    )
    batch = MicroBatch(at_once, training.length, asked=work.asked)
    convention = accounting.training_flops(network, training.length)
    return StagePlan(
        name=name,
        parameters=counted,
        n_parameters=counted.total,
        n_tokens=n_tokens,
        n_steps=training.n_steps,
        micro_batch_tokens=batch.tokens,
        computed_flops=accounting.training_flops(network, training.length, work).total * n_tokens,
        cost=place.cost(convention.total * n_tokens),
        checkpoint_bytes=memory.checkpoint_bytes(network, "weights"),
        resumable_checkpoint_bytes=memory.checkpoint_bytes(network, "resumable"),
        memory=tuple(
            _memory(network, batch, place, stage, _precision(training)) for stage in ZERO_STAGES
        ),
    )


def _memory(
    network: LanguageModelConfig,
    batch: MicroBatch,
    place: Place,
    stage: Zero,
    precision: Precision,
) -> MemoryPlan:
    zero = _at_stage(place.zero, stage)
    ranks = place.ranks.ranks
    found = memory.per_rank(network, batch, zero, ranks=ranks, precision=precision)
    checkpointing = zero.model_copy(update={"activation_checkpointing": True})
    least = memory.per_rank(network, batch, checkpointing, ranks=ranks, precision=precision)
    verdict: Verdict = "does not fit"
    if found.total <= place.usable_bytes:
        verdict = "fits"
    elif least.total <= place.usable_bytes:
        verdict = "fits with activation checkpointing"
    return MemoryPlan(
        zero_stage=stage,
        is_chosen=stage == place.zero.stage,
        memory=found,
        total_bytes=found.total,
        total_bytes_with_checkpointing=least.total,
        verdict=verdict,
    )


def _precision(training: TrainingConfig) -> Precision:
    """`auto` is counted as bfloat16, which is what it takes on every listed device."""
    return memory.FLOAT32 if training.dtype == "float32" else memory.BFLOAT16


def _mean_rate(noise: NoiseConfig) -> float:
    match noise.kind:
        case "uniform":
            return (noise.low + noise.high) / 2
        case "moving_gaussian":
            return (noise.centre_first + noise.centre_last) / 2
        case "heavy":
            return noise.heavy_centre


def _ladder(recipe: Recipe, place: Place) -> LadderPlan:
    """Points are processes of one rank, side by side on all devices."""
    points = ladders.plan(recipe.ladder)
    vocab_size = recipe.packing.vocab_size
    settled = [
        ladders.settle(
            point, vocab_size=vocab_size, n_known=recipe.expected_concepts,
            specials=_specials(vocab_size),
        )
        for point in points
    ]  # fmt: skip
    training = recipe.ladder.training
    at_once = max(1, training.batch_sequences // training.micro_batches)
    batch = MicroBatch(at_once, training.length)
    sizes = [
        memory.per_rank(each.network, batch, ZeroConfig(stage=0), ranks=1).total for each in settled
    ]
    return LadderPlan(
        n_points=len(points),
        largest_point=points[sizes.index(max(sizes))].name,
        largest_point_bytes=max(sizes),
        largest_point_fits=max(sizes) <= place.usable_bytes,
        cost=place.cost(sum(each.flops for each in settled)),
    )
