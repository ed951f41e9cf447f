"""One optimisation as its ranks are told of it: travels as JSON to `components.rank`."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import PositiveInt

from components import contracts, loader
from components.data_config import DataConfig
from components.training_state import Topology, TrainingState
from model import schedules
from model.config import Config, LanguageModelConfig
from model.progress import Standing
from model.train_config import TrainingConfig
from model.zero_config import ZeroConfig


class Job(Config):
    """Everything a rank must know."""

    tokens: str
    """Folder of the token stream, or of its manifest alone where its files lie elsewhere."""

    folder: str
    network: LanguageModelConfig

    start_from: str
    """Folder of the checkpoint to go on from; empty: fresh weights, seeded."""

    prevalence: tuple[float, ...]
    """Of each known concept: where the biases of fresh weights start."""

    training: TrainingConfig

    lifted: str = ""
    """Folder of the lifted words; empty where there are no steering steps."""

    domain_weights: dict[str, float]
    """Shares of the domains in a batch; empty: every window once an epoch."""

    data: DataConfig = DataConfig()
    """Where the batches come from."""

    validation_sequences: PositiveInt
    zero: ZeroConfig

    trained_eos: PositiveInt | None = None
    """Where the tokens are conversations: EOS asked for behind each answer, beside which nothing
    but the answer is. None: the tokens are plain text, and all are asked for."""

    scratch: str = ""
    """Folder of the run's savepoints; empty: none are made."""

    savepoint: str = ""
    """Folder of the savepoint to go on from; empty: the run begins."""

    def topology(self, ranks: int) -> Topology:
        """How the optimiser's state is split over so many ranks."""
        return Topology(
            ranks=ranks, zero_stage=self.zero.stage, micro_batches=self.training.micro_batches
        )

    @property
    def computes(self) -> str:
        """SHA-256 of all that decides what the steps are."""
        what = {
            "network": self.network.model_dump(mode="json"),
            "training": self.training.model_dump(
                mode="json", exclude={*TrainingConfig.HOW, "continue_from"}
            ),
            "prevalence": self.prevalence,
            "domain_weights": self.domain_weights,
            "data": self.data.model_dump(mode="json", exclude=set(DataConfig.HOW)),
            "validation_sequences": self.validation_sequences,
            "trained_eos": self.trained_eos,
            "tokens": self.tokens_digest,
            "lifted": contracts.manifest_of(Path(self.lifted)).digest if self.lifted else "",
        }
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def tokens_digest(self) -> str:
        return contracts.manifest_of(Path(self.tokens)).digest

    def state(
        self, standing: Standing, ranks: int, loaders: Sequence[Mapping[str, object]]
    ) -> TrainingState:
        """Everything but tensors, as a savepoint holds it; `loaders` are all ranks' states."""
        training = self.training
        progress = standing.step / training.n_steps
        return TrainingState(
            standing=standing,
            tokens=standing.step * training.tokens_per_step,
            alpha_known=schedules.alpha(training.objective.alpha_known, progress),
            alpha_unknown=schedules.alpha(training.objective.alpha_unknown, progress),
            loader=loader.joined(loaders),
            topology=self.topology(ranks),
            computes=self.computes,
        )
