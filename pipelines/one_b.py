"""The recipe `one_b`: the scale of the paper's ablations, on one node of eight accelerators."""

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
    InterleavingConfig,
    ObjectiveConfig,
    OptimConfig,
    TrainingConfig,
)
from model.zero_config import ZeroConfig
from pipelines import ladder, scale, sources
from pipelines.recipe import Recipe

PRETRAINING_TOKENS, MIDTRAINING_TOKENS = 20_000_000_000, 2_500_000_000

_NETWORK = NetworkConfig(
    width=1_536, n_layers=30, n_heads=24, n_kv_heads=3, mlp_width=6_144, max_length=4_096,
    block=64, rank=256,
)  # fmt: skip
_TRAINING = TrainingConfig(
    n_tokens=PRETRAINING_TOKENS, batch_sequences=256, length=4_096, micro_batches=8,
    dtype="bfloat16", compiled=True, validations=40, log_every=10, patience_non_finite=10,
    optim=OptimConfig(peak_lr=4e-4, warmup=0.01, decay=0.1),
    objective=ObjectiveConfig(reduction="block_mean", sparse_from=0.9),
)  # fmt: skip
_MIDTRAINING = _TRAINING.model_copy(
    update={
        "n_tokens": MIDTRAINING_TOKENS, "objective": OBJECTIVE, "noise": NOISE,
        "interleaving": InterleavingConfig(), "validations": 10,
        "optim": OptimConfig(peak_lr=1e-4, warmup=0.0, decay=1.0, decay_shape="linear"),
    }
)  # fmt: skip
_RANKS = RanksConfig(ranks=8, threads=8)
_ZERO = ZeroConfig(stage=1, overlap=True)
_MIXTURE = sources.midtraining("code_augmented", "real")


def one_b() -> Recipe:
    """One billion parameters on the paper's sources: ablations, one node, a few days."""
    return Recipe(
        name="one_b", seed=0,
        summary="1.0 B parameters beside concepts and vocabulary, 22.5e9 tokens, one node of eight",
        corpus=CorpusConfig(
            sources=sources.hub_sources(
                (sources.PRETRAINING, PRETRAINING_TOKENS), (_MIXTURE, MIDTRAINING_TOKENS)
            ),
            valid_share=0.005, test_share=0.005,
        ),
        expected_concepts=33_732, hardware="h100",
        gates=scale.GATES, chunking=scale.CHUNKING, embedding=scale.EMBEDDING,
        tagging=scale.tagging(n_train=2_000_000, n_held_out=20_000),
        library=scale.library((20_000, 40_000, 60_000, 80_000)),
        annotator=scale.LEARN, labelling=scale.LABELLING, judging=scale.JUDGING,
        packing=PackConfig(vocab_size=65_536, block=64), lift=scale.LIFT,
        training=TrainConfig(
            network=_NETWORK, training=_TRAINING, domain_weights=sources.PRETRAINING,
            ranks=_RANKS, zero=_ZERO, validation_sequences=128,
        ),
        midtraining=MidtrainConfig(
            training=_MIDTRAINING, domain_weights=_MIXTURE, ranks=_RANKS, zero=_ZERO,
            validation_sequences=128,
        ),
        evaluation=scale.EVALUATION, ladder=ladder.LABORATORY, fit=FitConfig(), index=scale.INDEX,
        naming=scale.NAMING, attribution=scale.ATTRIBUTION, steering=scale.STEERING,
        registry=PromoteConfig(name="clearstory-1b"), report=ReportConfig(recipe="one_b"),
    )  # fmt: skip
