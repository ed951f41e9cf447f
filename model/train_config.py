"""Config of one optimisation: objective, noise, forcing, optimiser, length (paper §5.4, app. G).

No torch here.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from model.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""


class NoiseConfig(Config):
    """How much of a block is masked in training (paper §5.2, §9.2)."""

    kind: Literal["uniform", "moving_gaussian", "heavy"] = "uniform"
    low: PositiveFloat = 0.05
    high: PositiveFloat = 0.95

    centre_first: PositiveFloat = 0.2
    """Centre of the moving Gaussian at the first step; it moves linearly to `centre_last`."""

    centre_last: PositiveFloat = 0.8
    deviation: PositiveFloat = 0.3

    heavy_centre: Share = 0.8
    """Where `heavy` rates gather, the alternative the paper tried in mid-training (§10.2)."""

    heavy_deviation: PositiveFloat = 0.1

    clean_prefix: Share = 0.0
    """Share of sequences whose first blocks are left whole, as they are in generation."""

    @model_validator(mode="after")
    def _rates_fit(self) -> Self:
        if not self.low < self.high <= 1.0:
            raise ValueError(f"noise from {self.low} to {self.high}: need low < high <= 1")
        return self


class AlphaConfig(Config):
    """Probability of teacher forcing over training: hold `first`, move to `last`, hold it."""

    first: Share
    last: Share
    move_from: Share = 0.0
    """Share of the steps after which it starts to move."""

    move_until: Share = 1.0
    shape: Literal["cosine", "linear"] = "linear"


class ObjectiveConfig(Config):
    """L = L_LM + λ_c L_c + λ_rec L_rec + λ_ind L_ind (paper §5.4.1) and what is dropped."""

    reduction: Literal["token_mean", "block_mean", "elbo"] = "token_mean"
    """How masked tokens are weighed: alike, each block alike, or by 1 / rate."""

    concept_weight: NonNegativeFloat = 1.0
    reconstruction_weight: NonNegativeFloat = 1.0
    independence_weight: NonNegativeFloat = 1.0

    respond_weight: NonNegativeFloat = 1.0
    express_weight: NonNegativeFloat = 1.0
    """Of the two losses of steering steps, which have no other but L_LM (eq. 33)."""

    independence: Literal["known_unknown", "two_term"] = "known_unknown"
    """`two_term` adds the dependence between known part and residual (mid-training)."""

    or_tokens: Literal["masked", "all"] = "masked"
    """Tokens of a chunk that vote on its concepts."""

    known_dropout: Share = 0.1
    """Share of sequences whose pooled label embeddings are zeroed."""

    residual_dropout: Share = 0.1
    """Share of tokens predicted from the known and unknown parts alone. At 0 no known concept
    embedding ever learns; 1 is the network without a residual."""

    alpha_known: AlphaConfig = AlphaConfig(
        first=1.0, last=0.5, move_from=0.15, move_until=0.5, shape="cosine"
    )
    alpha_unknown: AlphaConfig = AlphaConfig(first=1.0, last=0.5, move_from=0.25)

    document_mask: bool = False
    """Whether a token sees only its own document. The paper's windows cross documents."""

    sparse_from: Share = 1.0
    """Share of the steps after which both heads keep their top-k alone (the anneal phase)."""


class OptimConfig(Config):
    """AdamW with warm-up, a stable phase and a decay (paper appendix G)."""

    peak_lr: PositiveFloat
    warmup: Share = 0.01
    """Share of the steps in which the learning rate rises linearly from zero."""

    decay: Share = 0.1
    """Share of the steps, the last ones, in which it falls to the floor."""

    decay_shape: Literal["one_minus_sqrt", "linear", "cosine"] = "one_minus_sqrt"
    floor: Share = 0.0
    """Share of the peak that the decay ends at."""

    beta1: Share = 0.9
    beta2: Share = 0.95
    eps: PositiveFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.1
    clip_norm: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _phases_fit(self) -> Self:
        if self.warmup + self.decay > 1.0:
            raise ValueError(
                f"warmup {self.warmup} + decay {self.decay} exceed the whole run; lower one"
            )
        return self


class InterleavingConfig(Config):
    """Steering phases inside training, and what their steps do (paper §10.2.4, table 36)."""

    phases: NonNegativeInt = 4
    """Runs of steering steps. 0: none."""

    phase: Share = 0.01
    """Share of all steps in each phase."""

    warmup: Share = 0.02
    """Share of all steps before the first phase."""

    gap: Share = 0.0
    """Share of all steps between two phases. The paper's phases follow each other."""

    gain: PositiveFloat = 1.0
    """γ: length of what is injected."""

    first_layer: Share = 0.5
    """Where injection starts, as a share of the layers."""

    @model_validator(mode="after")
    def _phases_fit(self) -> Self:
        end = self.warmup + self.phases * self.phase + max(0, self.phases - 1) * self.gap
        if end > 1.0:
            raise ValueError(
                f"steering phases would end after {end:.2f} of the steps; lower phases, phase, gap "
                f"or warmup until it is at most 1"
            )
        if self.first_layer >= 1.0:
            raise ValueError("first_layer is a share of the layers below 1; the paper's is 0.5")
        return self


class SavingConfig(Config):
    """When a run's whole state is kept, so that it can go on after a kill. Changes no loss."""

    every_seconds: PositiveFloat = 120.0
    """Wall time between two savepoints: what a kill can cost."""

    every_steps: NonNegativeInt = 0
    """Steps between two savepoints, besides; 0: by the clock alone."""

    keep_every: NonNegativeInt = 0
    """Steps between two savepoints that are kept for good, to branch from; 0: none."""

    last: Annotated[int, Field(ge=2)] = 2
    """Verified savepoints that are left besides those kept for good."""

    grace_seconds: NonNegativeFloat = 10.0
    """Time from SIGTERM to SIGKILL: the last savepoint is written if it fits in."""


class TrainingConfig(Config):
    """One optimisation of one network."""

    HOW: ClassVar[tuple[str, ...]] = (
        "micro_batches",
        "saving",
        "tell_seconds",
        "gradient_norms_every",
    )

    n_tokens: PositiveInt
    """Training tokens to see; the steps follow from the batch."""

    batch_sequences: PositiveInt
    """Sequences of a global batch, over all ranks and micro-batches."""

    length: PositiveInt
    """Tokens of a sequence."""

    micro_batches: PositiveInt = 1
    """Parts a rank's share of the batch is computed in, one after the other."""

    seed: NonNegativeInt = 0

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` takes bfloat16 where the processor multiplies in it."""

    compiled: bool = False
    """Whether torch compiles the backbone's layers: a minute at the start, for faster steps."""

    optim: OptimConfig
    noise: NoiseConfig = NoiseConfig()
    objective: ObjectiveConfig = ObjectiveConfig()

    interleaving: InterleavingConfig | None = None
    """None: no steering steps."""

    validations: PositiveInt = 5
    """Times the held-out loss is measured, the last after the last step."""

    log_every: PositiveInt = 10
    """Steps between two rows of the curve."""

    patience_non_finite: NonNegativeInt = 3
    """Steps in a row whose loss or gradient may be infinite or no number; each is skipped."""

    tell_seconds: PositiveFloat = 5.0
    """Time between two lines of how it goes."""

    gradient_norms_every: NonNegativeInt = 250
    """Steps between two measurements of each loss term's own gradient; 0: none. One costs a step's
    work for each term, so 1.6% of the time at 250, and a whole gradient in float32 on every rank
    for as long: none where that is what ZeRO splits the weights for."""

    saving: SavingConfig = SavingConfig()

    continue_from: str = ""
    """Folder of a savepoint, of this run or of another, to go on from: weights, optimiser, step.
    Empty: from this run's newest, if it has one. See `annealed`."""

    def annealed(self, savepoint: str, step: int, n_steps: int) -> "TrainingConfig":
        """A run that goes on from a savepoint after `step` steps and only decays, for `n_steps`.

        Checkpoints of one run with a constant rate are compared that way (paper appendix G): each
        gets a decay of its own. Weights, optimiser and the order of the data go on; shares of the
        other schedules count from the whole new run.
        """
        if step < round(self.optim.warmup * self.n_steps):
            raise ValueError(
                f"step {step} is still in the warm-up of "
                f"{round(self.optim.warmup * self.n_steps)} steps; anneal from a later one"
            )
        whole = step + n_steps
        decay = n_steps / whole
        warmup = min(self.optim.warmup * self.n_steps / whole, 1.0 - decay)
        return self.model_copy(
            update={
                "n_tokens": whole * self.tokens_per_step,
                "optim": self.optim.model_copy(update={"warmup": warmup, "decay": decay}),
                "continue_from": savepoint,
            }
        )

    @property
    def n_steps(self) -> int:
        return max(1, round(self.n_tokens / self.tokens_per_step))

    @property
    def tokens_per_step(self) -> int:
        return self.batch_sequences * self.length
