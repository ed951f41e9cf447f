"""The recipe `demo`: real text of five domains, tagged by a language model, a small network."""

from components.atlas.config import ChunkConfig, EmbedConfig, TagConfig
from components.atlas.judging_config import JudgeConfig
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.learning_config import LearnConfig
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.attribution.config import AttributeConfig
from components.corpus.config import (
    ConverseConfig,
    CorpusConfig,
    EncyclopediaConversations,
    PackageSource,
)
from components.cutting_config import CutConfig
from components.evaluation.config import EvaluateConfig
from components.finetuning.config import ANSWER_NOISE, ANSWER_OBJECTIVE, FinetuneConfig
from components.gates.config import CheckConfig
from components.index.config import BuildConfig
from components.judging_config import EmbeddingJudgeConfig
from components.launch import RanksConfig
from components.midtraining.config import NOISE, OBJECTIVE, MidtrainConfig
from components.naming.config import NameConfig
from components.packing.config import LiftConfig, PackConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from components.scaling.config import FitConfig, LadderConfig, PointTraining, Size
from components.steering.config import ResponseConfig, SafetyConfig, SteerConfig
from components.training.config import TrainConfig
from model.config import NetworkConfig
from model.sampling_config import SamplingConfig
from model.train_config import InterleavingConfig, ObjectiveConfig, OptimConfig, TrainingConfig
from pipelines.recipe import Recipe

_ENCODER = "minilm-int8"
_CORPUS = CorpusConfig(
    max_chars=12_000,
    sources=tuple(
        PackageSource(reader=reader, max_bytes=max_bytes)
        for reader, max_bytes in (
            ("encyclopedia", 1_100_000), ("literature", 900_000), ("medicine", 800_000),
            ("mathematics", 900_000), ("code", 900_000),
        )
    ),
)  # fmt: skip
_NETWORK = NetworkConfig(
    width=256, n_layers=4, n_heads=4, n_kv_heads=2, mlp_width=768, max_length=256, block=32,
    rank=32,
)  # fmt: skip
_RANKS = RanksConfig(ranks=2, threads=1)
"""On two cores faster than one rank of two threads: 8,630 against 7,710 tokens a second."""

_TRAINING = TrainingConfig(
    n_tokens=2_800_000, batch_sequences=12, length=256, validations=4,
    optim=OptimConfig(peak_lr=1e-3, warmup=0.05, decay=0.2),
    objective=ObjectiveConfig(reduction="block_mean", sparse_from=0.8),
)  # fmt: skip
_MIDTRAINING = _TRAINING.model_copy(
    update={
        "n_tokens": 300_000, "objective": OBJECTIVE, "noise": NOISE, "validations": 2,
        "optim": OptimConfig(peak_lr=5e-4, warmup=0.0, decay=1.0, decay_shape="linear"),
        "interleaving": InterleavingConfig(phase=0.12, gain=24.0, first_layer=0.25),
    }
)  # fmt: skip
"""Steering steps inject as steering will: 8 logits are a length of 26 here (median of 200
concepts), where states have 28 to 70; of the paper's 1.0 a network of this size notices nothing."""

_FINETUNING = _TRAINING.model_copy(
    update={
        "n_tokens": 150_000, "objective": ANSWER_OBJECTIVE, "noise": ANSWER_NOISE,
        "validations": 2,
        "optim": OptimConfig(peak_lr=3e-4, warmup=0.05, decay=0.95, decay_shape="linear"),
    }
)  # fmt: skip
_CONVERSATIONS = ConverseConfig(
    sources=(EncyclopediaConversations(max_conversations=500, skip=3_000),)
)
"""Articles beyond those that the corpus takes, so that no answer was trained on before."""

_MIXTURE = {
    "encyclopedia": 0.2, "literature": 0.15, "medicine": 0.15, "mathematics": 0.25, "code": 0.25,
}  # fmt: skip
"""More mathematics and code than the corpus holds, as in the paper's mid-training."""

_LADDER = LadderConfig(
    families=("cdlm", "cdlm_concept"), budgets_flops=(1.5e11, 4.5e11),
    sizes=tuple(
        Size(width=width, n_layers=2, n_heads=2, n_kv_heads=1, mlp_width=4 * width)
        for width in (24, 48, 96)
    ),
    training=PointTraining(
        length=128, block=32, batch_sequences=4, rank=8, top_k=16, top_k_unknown=32,
        optim=OptimConfig(peak_lr=6e-3, warmup=0.05, decay=0.2),
    ),
    evaluation_tokens=40_000,
)  # fmt: skip

_STEERING = SteerConfig(
    n_concepts=60, strengths=(0.0, 8.0, 16.0, 32.0), suppressions=(2.0, 4.0),
    strengths_before=(8.0, 16.0), n_neutral=2, n_about=1, prompt_tokens=40, batch_rows=128,
    safety=SafetyConfig(about="Diseases, their symptoms and how they are treated", strength=2.0),
    response=ResponseConfig(n_concepts=2, strength=16.0),
    sampling=SamplingConfig(n_new=24, temperature=0.5, top_p=0.9, repetition_penalty=1.2),
)  # fmt: skip
"""Prompts and new tokens fill two blocks of 32: one that is cached, one that is written."""


def demo() -> Recipe:
    """Real text, a language model that tags it, a few million parameters: a laptop's half hour."""
    return Recipe(
        name="demo", seed=0,
        summary="5 MB of text, a library of 150 concepts or more, 3.1 M training tokens, "
        "about 22 minutes on two cores",
        corpus=_CORPUS, expected_concepts=200,
        gates=CheckConfig(),
        chunking=ChunkConfig(encoder=_ENCODER),
        embedding=EmbedConfig(encoder=_ENCODER, shard_chunks=2_048),
        tagging=TagConfig(tagger="language_model", encoder=_ENCODER),
        library=CanonicaliseConfig(
            encoder=_ENCODER, sweep=(260, 300, 340, 380),
            naming=NamingConfig(namer="language_model", vocabulary="encyclopedia"),
        ),
        annotator=LearnConfig(),
        labelling=AnnotateConfig(),
        judging=JudgeConfig(judge=EmbeddingJudgeConfig(encoder=_ENCODER)),
        packing=PackConfig(vocab_size=4_096, block=32),
        lift=LiftConfig(min_support=4),
        training=TrainConfig(network=_NETWORK, training=_TRAINING, ranks=_RANKS),
        midtraining=MidtrainConfig(
            training=_MIDTRAINING, domain_weights=_MIXTURE, ranks=_RANKS
        ),
        evaluation=EvaluateConfig(
            length=256, embedder=_ENCODER, batch_sequences=16, max_tokens=100_000
        ),
        ladder=_LADDER,
        fit=FitConfig(),
        index=BuildConfig(
            length=256, n_fitted=5_000, n_held_back=200, n_held_out=200, n_verbatim=100
        ),
        naming=NameConfig(length=256, scan_tokens=60_000, n_named=60),
        attribution=AttributeConfig(
            sampling=SamplingConfig(n_new=64, temperature=0.7, top_p=0.9, repetition_penalty=1.2),
        ),
        steering=_STEERING,
        registry=PromoteConfig(name="clearstory-demo"),
        report=ReportConfig(recipe="demo"),
        conversations=_CONVERSATIONS,
        finetuning=FinetuneConfig(
            training=_FINETUNING, cutting=CutConfig(encoder=_ENCODER), ranks=_RANKS
        ),
    )  # fmt: skip
