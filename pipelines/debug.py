"""The recipe `debug`: 40 documents written for the tests, two layers, nothing to download."""

from pathlib import Path

from components.atlas.config import ChunkConfig, EmbedConfig, TagConfig
from components.atlas.judging_config import JudgeConfig
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.learning_config import LearnConfig
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.attribution.config import AttributeConfig, MaskingConfig
from components.corpus.config import (
    ConverseConfig,
    CorpusConfig,
    FolderSource,
    JsonlConversations,
)
from components.cutting_config import CutConfig
from components.evaluation.config import EvaluateConfig
from components.finetuning.config import ANSWER_NOISE, ANSWER_OBJECTIVE, FinetuneConfig
from components.gates.config import (
    CheckConfig,
    ChunkBounds,
    ConceptBounds,
    DocumentBounds,
    LabelBounds,
    LiftedBounds,
    MessageBounds,
    TagBounds,
    TokenBounds,
)
from components.index.config import BuildConfig
from components.judging_config import EmbeddingJudgeConfig
from components.launch import RanksConfig
from components.midtraining.config import NOISE, OBJECTIVE, MidtrainConfig
from components.naming.config import NameConfig
from components.nearest_config import LayoutConfig
from components.packing.config import LiftConfig, PackConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from components.scaling.config import FitConfig, LadderConfig, PointTraining, Size
from components.steering.config import ResponseConfig, SafetyConfig, SteerConfig
from components.training.config import TrainConfig
from model.config import NetworkConfig
from model.input_attribution_config import InputAttributionConfig
from model.sampling_config import SamplingConfig
from model.train_config import InterleavingConfig, ObjectiveConfig, OptimConfig, TrainingConfig
from pipelines.recipe import Recipe

_TESTS = Path(__file__).resolve().parent.parent / "tests"
_DOCUMENTS, _CONVERSATIONS = _TESTS / "data", _TESTS / "conversations" / "debug.jsonl"
_RANKS = RanksConfig(ranks=1, threads=1)
_GATES = CheckConfig(
    documents=DocumentBounds(min_documents=35),
    chunks=ChunkBounds(min_chunks=80, max_long_share=0.2),
    tags=TagBounds(
        min_tagged_chunks=20, min_distinct_tags=40, min_mean_tags_per_chunk=1.0,
        max_commonest_tag_share=0.8,
    ),
    concepts=ConceptBounds(min_concepts=8, max_prevalence=0.5),
    labels=LabelBounds(min_labelled_chunks=60, min_concepts=8, max_commonest_concept_share=0.9),
    lifted=LiftedBounds(min_words=20, min_concepts=5),
    tokens=TokenBounds(min_train_tokens=5_000, min_labelled_share=0.5),
    messages=MessageBounds(min_conversations=20, min_distinct_answers=20),
)  # fmt: skip
_NETWORK = NetworkConfig(
    width=32, n_layers=2, n_heads=4, n_kv_heads=2, mlp_width=64, max_length=64, block=16,
    rank=8, top_k=4, top_k_unknown=8,
)  # fmt: skip
_TRAINING = TrainingConfig(
    n_tokens=30 * 4 * 64, batch_sequences=4, length=64, validations=2, log_every=5,
    optim=OptimConfig(peak_lr=3e-3, warmup=0.1, decay=0.2),
    objective=ObjectiveConfig(reduction="block_mean"),
)  # fmt: skip
_MIDTRAINING = _TRAINING.model_copy(
    update={
        "n_tokens": 8 * 4 * 64, "objective": OBJECTIVE, "noise": NOISE,
        "optim": OptimConfig(peak_lr=1e-3, warmup=0.0, decay=1.0, decay_shape="linear"),
        "interleaving": InterleavingConfig(phases=2, phase=0.125, warmup=0.125),
    }
)  # fmt: skip
_CUTTING: dict[str, int | str] = {
    "encoder": "hashing", "target_min": 12, "target_max": 20, "hard_max": 40, "min_wordpieces": 4,
}  # fmt: skip
_FINETUNING = _TRAINING.model_copy(
    update={
        "n_tokens": 12 * 4 * 64, "objective": ANSWER_OBJECTIVE, "noise": ANSWER_NOISE,
        "optim": OptimConfig(peak_lr=1e-3, warmup=0.1, decay=0.9, decay_shape="linear"),
    }
)  # fmt: skip
_LADDER = LadderConfig(
    families=("cdlm",), budgets_flops=(4e8, 8e8),
    sizes=tuple(
        Size(width=width, n_layers=1, n_heads=2, n_kv_heads=1, mlp_width=2 * width)
        for width in (8, 16, 24)
    ),
    training=PointTraining(
        length=64, block=16, batch_sequences=4, rank=4, top_k=4, top_k_unknown=8,
        optim=OptimConfig(peak_lr=1e-2, warmup=0.1, decay=0.2),
    ),
    evaluation_tokens=2_000,
)  # fmt: skip
_INDEX = BuildConfig(
    length=64, n_fitted=100, n_held_back=15, n_held_out=15, hidden_width=32, n_steps=60,
    batch_pairs=32, n_verbatim=20, layout=LayoutConfig(recall_queries=30),
)  # fmt: skip
_ATTRIBUTION = AttributeConfig(
    n_prompts=3, prompt_tokens_least=5, prompt_tokens_most=9, input_targets=3,
    inputs=InputAttributionConfig(max_evaluations=5),
    masking=MaskingConfig(
        targets=1, counts=(1, 3),
        in_parts=InputAttributionConfig(n_parts=3, max_evaluations=7),
    ),
    sampling=SamplingConfig(n_new=12, temperature=0.7, top_p=0.9),
)  # fmt: skip
_STEERING = SteerConfig(
    n_concepts=3, strengths=(0.0, 16.0), suppressions=(8.0,), strengths_before=(16.0,),
    n_neutral=1, n_about=1, prompt_tokens=5, min_words=1, safety=SafetyConfig(
        about="sea and weather", n_members=2, n_prompts=2, strength=16.0,
    ),
    response=ResponseConfig(n_targets=2, n_concepts=2, strength=16.0),
    sampling=SamplingConfig(n_new=10, temperature=0.8, top_p=0.9),
)  # fmt: skip


def debug() -> Recipe:
    """Two layers, 40 documents, about two minutes on a laptop. The recipe of every test."""
    documents = FolderSource.of(_DOCUMENTS, licence="Apache-2.0")
    return Recipe(
        name="debug", summary="40 documents, two layers, about two minutes", seed=0,
        corpus=CorpusConfig(sources=(documents,), valid_share=0.15, test_share=0.15),
        expected_concepts=20,
        gates=_GATES,
        chunking=ChunkConfig.model_validate(_CUTTING),
        embedding=EmbedConfig(encoder="hashing"),
        tagging=TagConfig(tagger="phrases", encoder="hashing", n_train=60, n_held_out=15),
        library=CanonicaliseConfig(
            encoder="hashing", sweep=(20, 30, 40), max_prevalence=0.5,
            capped_kinds=("content", "document", "entity", "tone"),
            naming=NamingConfig(namer="medoid"),
        ),
        annotator=LearnConfig(
            n_steps=30, n_unlabelled=64, min_prevalence=0.05, max_prevalence=0.3
        ),
        labelling=AnnotateConfig(),
        judging=JudgeConfig(judge=EmbeddingJudgeConfig(encoder="hashing")),
        packing=PackConfig(vocab_size=384, block=16),
        lift=LiftConfig(min_support=2),
        training=TrainConfig(
            network=_NETWORK, training=_TRAINING, ranks=_RANKS, validation_sequences=8
        ),
        midtraining=MidtrainConfig(
            training=_MIDTRAINING, domain_weights={}, ranks=_RANKS, validation_sequences=8
        ),
        evaluation=EvaluateConfig(
            length=64, batch_sequences=16, min_positives=3, agreement_tokens=32,
            embedder="hashing",
        ),
        ladder=_LADDER,
        fit=FitConfig(bootstrap_draws=30),
        index=_INDEX,
        naming=NameConfig(
            length=64, scan_tokens=3_000, n_named=6, n_activating=4, least_activating=2, n_others=6,
            bootstrap_draws=20,
        ),
        attribution=_ATTRIBUTION,
        steering=_STEERING,
        registry=PromoteConfig(name="clearstory-debug"),
        report=ReportConfig(recipe="debug", map="pca"),
        conversations=ConverseConfig(
            sources=(JsonlConversations.of(_CONVERSATIONS, licence="Apache-2.0"),)
        ),
        finetuning=FinetuneConfig(
            training=_FINETUNING, cutting=CutConfig.model_validate(_CUTTING), ranks=_RANKS,
            validation_sequences=8, alignment_concepts=20,
        ),
    )  # fmt: skip
