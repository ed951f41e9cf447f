"""Everything of a training run but its tensors, as a savepoint holds it (components.savepoints)."""

from model.config import Config
from model.progress import Standing


class Topology(Config):
    """How the optimiser's state is split: a savepoint opens only where all of it is the same."""

    ranks: int
    zero_stage: int
    micro_batches: int


class TrainingState(Config):
    """Everything but tensors. Every member is required: one that is missing is an error."""

    standing: Standing
    tokens: int
    alpha_known: float
    alpha_unknown: float
    """Teacher forcing of the next step; follows from the step, kept for the reader."""

    loader: dict[str, object]
    """What the batches were taken from, and where they stand (`components.loader`)."""

    topology: Topology
    computes: str
    """SHA-256 of all that decides what is computed: network, training, data."""
