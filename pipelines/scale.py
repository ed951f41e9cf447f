"""What the recipes beyond this machine share: the stages whose numbers do not change with size.

Their text comes from the hub (`pipelines.sources`), their tags from a served language model.
"""

from components.atlas.config import ChunkConfig, EmbedConfig, TagConfig
from components.atlas.judging_config import JudgeConfig
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.learning_config import LearnConfig
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.attribution.config import AttributeConfig
from components.endpoints import RemoteModel
from components.engine_config import EngineConfig
from components.evaluation.config import EvaluateConfig
from components.gates.config import CheckConfig
from components.index.config import BuildConfig
from components.judging_config import LanguageModelJudgeConfig
from components.naming.config import NameConfig
from components.packing.config import LiftConfig
from components.steering.config import SteerConfig
from model.sampling_config import SamplingConfig

ENCODER = "Qwen/Qwen3-Embedding-0.6B"
LANGUAGE_MODEL = RemoteModel(
    base_url="http://language-model:8000/v1", name="Qwen/Qwen2.5-72B-Instruct", n_concurrent=64
)
"""Served inside the cluster by any server of the OpenAI protocol."""

GATES = CheckConfig()
CHUNKING = ChunkConfig(encoder=ENCODER)
EMBEDDING = EmbedConfig(encoder=ENCODER, engine=EngineConfig(n_workers=8))
LIFT = LiftConfig(min_support=20)
LEARN = LearnConfig(n_steps=20_000, n_unlabelled=4_096, min_prevalence=1e-5)
LABELLING = AnnotateConfig()
_JUDGE = LANGUAGE_MODEL.model_copy(update={"name": "meta-llama/Llama-3.3-70B-Instruct"})
"""Of another family than the tagger, which would like its own words best."""

JUDGING = JudgeConfig(judge=LanguageModelJudgeConfig(language_model=_JUDGE), n_pairs=1_000)
LENGTH = 4_096
SAMPLING = SamplingConfig(n_new=256, temperature=0.7, top_p=0.9, repetition_penalty=1.1)
EVALUATION = EvaluateConfig(length=LENGTH, embedder=ENCODER, batch_sequences=4)
INDEX = BuildConfig(
    length=LENGTH, n_fitted=1_000_000, n_held_back=10_000, n_held_out=10_000,
    hidden_width=2_048, n_steps=20_000, batch_pairs=4_096,
)  # fmt: skip
NAMING = NameConfig(length=LENGTH, n_named=1_000)
ATTRIBUTION = AttributeConfig(n_prompts=100, sampling=SAMPLING)
STEERING = SteerConfig(n_concepts=200, sampling=SAMPLING)


def tagging(n_train: int, n_held_out: int) -> TagConfig:
    """A language model reads so many chunks, and types its tags."""
    return TagConfig(
        tagger="language_model", encoder=ENCODER, n_train=n_train, n_held_out=n_held_out,
        language_model=LANGUAGE_MODEL, asks_for_kinds=True, max_passage_chars=2_000,
        max_tags_asked=20, max_answer_tokens=400, temperature=0.3,
    )  # fmt: skip


def library(sweep: tuple[int, ...]) -> CanonicaliseConfig:
    """Clusters that are tried; a language model names and describes those that are kept."""
    naming = NamingConfig(
        namer="language_model", language_model=LANGUAGE_MODEL, follows_instructions=True,
        max_members_shown=30, n_random_members_shown=10,
    )  # fmt: skip
    return CanonicaliseConfig(encoder=ENCODER, sweep=sweep, min_chunks=20, naming=naming)
