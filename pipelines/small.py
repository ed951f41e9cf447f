"""The recipe `small`: about 125 million parameters beside the concepts, on one accelerator."""

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

PRETRAINING_TOKENS, MIDTRAINING_TOKENS = 10_000_000_000, 1_000_000_000

_NETWORK = NetworkConfig(
    width=768, n_layers=12, n_heads=12, n_kv_heads=2, mlp_width=3_072, max_length=2_048,
    block=64, rank=128,
)  # fmt: skip
_TRAINING = TrainingConfig(
    n_tokens=PRETRAINING_TOKENS, batch_sequences=256, length=2_048, micro_batches=16,
    dtype="bfloat16", compiled=True, validations=40, log_every=10, patience_non_finite=10,
    optim=OptimConfig(peak_lr=1e-3, warmup=0.01, decay=0.1),
    objective=ObjectiveConfig(reduction="block_mean", sparse_from=0.9),
)  # fmt: skip
_MIDTRAINING = _TRAINING.model_copy(
    update={
        "n_tokens": MIDTRAINING_TOKENS, "objective": OBJECTIVE, "noise": NOISE,
        "interleaving": InterleavingConfig(), "validations": 10,
        "optim": OptimConfig(peak_lr=3e-4, warmup=0.0, decay=1.0, decay_shape="linear"),
    }
)  # fmt: skip
_RANKS = RanksConfig(ranks=1, threads=8)
_ZERO = ZeroConfig(stage=1)
_MIXTURE = sources.midtraining("code_augmented", "real")


def small() -> Recipe:
    """A hundred and twenty-five million parameters: one accelerator, about half a day."""
    return Recipe(
        name="small", seed=0,
        summary="125 M parameters beside the concepts, 11e9 tokens, one accelerator",
        corpus=CorpusConfig(
            sources=sources.hub_sources(
                (sources.PRETRAINING, PRETRAINING_TOKENS), (_MIXTURE, MIDTRAINING_TOKENS)
            ),
            valid_share=0.005, test_share=0.005,
        ),
        expected_concepts=4_096, hardware="h100",
        gates=scale.GATES, chunking=scale.CHUNKING, embedding=scale.EMBEDDING,
        tagging=scale.tagging(n_train=200_000, n_held_out=5_000),
        library=scale.library((4_000, 6_000, 8_000, 10_000)),
        annotator=scale.LEARN, labelling=scale.LABELLING, judging=scale.JUDGING,
        packing=PackConfig(vocab_size=32_768, block=64), lift=scale.LIFT,
        training=TrainConfig(
            network=_NETWORK, training=_TRAINING, domain_weights=sources.PRETRAINING,
            ranks=_RANKS, zero=_ZERO, validation_sequences=128,
        ),
        midtraining=MidtrainConfig(
            training=_MIDTRAINING, domain_weights=_MIXTURE, ranks=_RANKS, zero=_ZERO,
            validation_sequences=128,
        ),
        evaluation=scale.EVALUATION.model_copy(update={"length": 2_048}),
        ladder=ladder.SMALL, fit=FitConfig(),
        index=scale.INDEX.model_copy(update={"length": 2_048}),
        naming=scale.NAMING.model_copy(update={"length": 2_048}),
        attribution=scale.ATTRIBUTION, steering=scale.STEERING,
        registry=PromoteConfig(name="clearstory-125m"), report=ReportConfig(recipe="small"),
    )  # fmt: skip
