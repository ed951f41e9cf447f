"""The recipe `steerling_8b`: the paper's network, data and schedules, as far as they are known.

Where each number comes from stands in `PROVENANCE`, and as a table in docs/recipes.md. The form is
`clearstory plan steerling_8b`'s: a run of it wants a cluster (infra/README.md).
"""

from components.corpus.config import CorpusConfig
from components.launch import RanksConfig
from components.midtraining.config import NOISE, OBJECTIVE, MidtrainConfig
from components.packing.config import PackConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from components.scaling.config import FitConfig
from components.training.config import TrainConfig
from model.config import NetworkConfig
from model.train_config import (
    AlphaConfig,
    InterleavingConfig,
    NoiseConfig,
    ObjectiveConfig,
    OptimConfig,
    TrainingConfig,
)
from model.zero_config import ZeroConfig
from pipelines import ladder, scale, sources
from pipelines.recipe import Recipe

PRETRAINING_TOKENS, MIDTRAINING_TOKENS = 1_200_000_000_000, 150_000_000_000

_NETWORK = NetworkConfig(
    width=4_096, n_layers=32, n_heads=32, n_kv_heads=4, mlp_width=16_384, max_length=4_096,
    block=64, rank=256, known_bias=False,
)  # fmt: skip
_OBJECTIVE = ObjectiveConfig(
    residual_dropout=0.1, known_dropout=0.1, sparse_from=0.9,
    alpha_known=AlphaConfig(first=1.0, last=0.5, move_from=0.15, move_until=0.5, shape="cosine"),
    alpha_unknown=AlphaConfig(first=1.0, last=0.5, move_from=0.25),
)  # fmt: skip
_TRAINING = TrainingConfig(
    n_tokens=PRETRAINING_TOKENS, batch_sequences=1_024, length=4_096, micro_batches=4,
    dtype="bfloat16", compiled=True, validations=100, log_every=10, patience_non_finite=10,
    gradient_norms_every=0,
    optim=OptimConfig(peak_lr=3e-4, warmup=0.007, decay=0.1),
    noise=NoiseConfig(
        kind="moving_gaussian", centre_first=0.2, centre_last=0.8, deviation=0.3
    ),
    objective=_OBJECTIVE,
)  # fmt: skip
_MIDTRAINING = _TRAINING.model_copy(
    update={
        "n_tokens": MIDTRAINING_TOKENS, "objective": OBJECTIVE, "noise": NOISE,
        "interleaving": InterleavingConfig(), "validations": 20,
        "optim": OptimConfig(peak_lr=1e-4, warmup=0.0, decay=1.0, decay_shape="linear"),
    }
)  # fmt: skip
_RANKS = RanksConfig(ranks=256, threads=8)
_ZERO = ZeroConfig(stage=2, overlap=True, activation_checkpointing=True)
_MIXTURE = sources.midtraining("code_augmented", "real")


def steerling_8b() -> Recipe:
    """Eight billion parameters, 1.35e12 tokens, a library of 33,732 concepts."""
    return Recipe(
        name="steerling_8b", seed=0,
        summary="the paper's 8.4 B parameters and 1.35e12 tokens, for a cluster",
        corpus=CorpusConfig(
            sources=sources.hub_sources(
                (sources.PRETRAINING, PRETRAINING_TOKENS), (_MIXTURE, MIDTRAINING_TOKENS)
            ),
            valid_share=1e-4, test_share=1e-4,
        ),
        expected_concepts=33_732, hardware="h100",
        gates=scale.GATES, chunking=scale.CHUNKING, embedding=scale.EMBEDDING,
        tagging=scale.tagging(n_train=44_000_000, n_held_out=100_000),
        library=scale.library((10_000, 20_000, 40_000, 60_000, 80_000)),
        annotator=scale.LEARN, labelling=scale.LABELLING, judging=scale.JUDGING,
        packing=PackConfig(vocab_size=100_281, block=64), lift=scale.LIFT,
        training=TrainConfig(
            network=_NETWORK, training=_TRAINING, domain_weights=sources.PRETRAINING,
            ranks=_RANKS, zero=_ZERO, validation_sequences=256,
        ),
        midtraining=MidtrainConfig(
            training=_MIDTRAINING, domain_weights=_MIXTURE, ranks=_RANKS, zero=_ZERO,
            validation_sequences=256,
        ),
        evaluation=scale.EVALUATION, ladder=ladder.PAPER, fit=FitConfig(), index=scale.INDEX,
        naming=scale.NAMING, attribution=scale.ATTRIBUTION, steering=scale.STEERING,
        registry=PromoteConfig(name="steerling-8b"),
        report=ReportConfig(recipe="steerling_8b"),
    )  # fmt: skip
