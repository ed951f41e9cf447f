"""Config of what an optimisation reads: the stage's tokens, or a mixture of sources by weight.

No torch here.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from components.order import Shares
from components.storage import StorageConfig
from model.config import Config


class PackedSource(Config):
    """Windows of a Tokens artifact in a global shuffle, chunks and concepts with them."""

    kind: Literal["packed"] = "packed"
    location: str = ""
    """A folder, or `s3://bucket/prefix`; empty: the tokens that the stage is given."""

    digest: str = ""
    """Of that artifact, as its manifest has it: what lies there must be what was meant."""

    @model_validator(mode="after")
    def _one_artifact_is_meant(self) -> Self:
        if bool(self.location) != bool(self.digest):
            raise ValueError(
                f"a packed source has location {self.location!r} and digest {self.digest!r}; give "
                f"the `digest` of the manifest.json that lies there, or neither for the stage's "
                f"own tokens"
            )
        return self


class StreamedSource(Config):
    """One dataset, by what `datasets.load_dataset` calls it; windows are made while it is read."""

    kind: Literal["streamed"] = "streamed"

    path: str
    """A dataset of the hub, a folder, or `json`, `parquet`, `text` with `data_files`."""

    name: str = ""
    """Its configuration; empty: the default one."""

    revision: str = ""
    """Commit of the dataset. Pin it: a dataset that changes cannot be resumed exactly."""

    split: str = "train"
    data_files: tuple[str, ...] = ()
    text_column: str = "text"


DataSource = Annotated[PackedSource | StreamedSource, Field(discriminator="kind")]


class DataConfig(Config):
    """Where training windows come from. Unless said: all windows of the stage's tokens."""

    HOW: ClassVar[tuple[str, ...]] = ("location", "storage", "ahead", "recent_bytes")

    location: str = ""
    """Where the files of the stage's tokens are read by ranges: a folder, or `s3://bucket/prefix`
    that holds the same artifact. Empty: where the stage is given them."""

    storage: StorageConfig = StorageConfig()
    """The service behind every `s3://`."""

    ahead: NonNegativeInt = 2
    """Batches made in a thread while a step runs, where they come from S3 or from streams. From
    folders none is: a batch takes less than a hundredth of a step."""

    recent_bytes: NonNegativeInt = 1 << 28
    """Bytes of S3 kept in a rank's memory, those that were read last; 0: none."""

    sources: dict[str, DataSource] = Field(default_factory=dict)
    """By name. Empty: the stage's tokens alone, by domain if `domain_weights` says so."""

    weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Share of every source in the batches; they need not sum to 1."""

    lanes: PositiveInt = 1
    """Readers side by side of each streamed source: a multiple of every number of ranks that is
    ever to be used, and a divisor of `batch_sequences`."""

    @model_validator(mode="after")
    def _each_source_has_a_weight(self) -> Self:
        if set(self.sources) != set(self.weights):
            raise ValueError(
                f"the sources are {sorted(self.sources)}, but weights are given for "
                f"{sorted(self.weights)}; each source needs one"
            )
        if self.weights:
            Shares(self.weights)  # refuses a weight that is too small to ever come
        return self

    @property
    def is_streamed(self) -> bool:
        """Whether batches come in their order alone, from a state to the next."""
        return any(isinstance(source, StreamedSource) for source in self.sources.values())

    def refuse_uneven(self, *, batch_sequences: int, ranks: int) -> None:
        """Raise ValueError where ranks cannot share the lanes, or the lanes a batch, evenly."""
        if not self.is_streamed:
            return
        if self.lanes % ranks or batch_sequences % self.lanes:
            whole = -(-batch_sequences // ranks) * ranks
            raise ValueError(
                f"{self.lanes} lanes cannot be shared by {ranks} ranks and fill {batch_sequences} "
                f"sequences evenly: the lanes must be a multiple of the ranks and divide the "
                f"sequences; try lanes={ranks} and batch_sequences={whole}"
            )

    def refuse_two_mixtures(self, domain_weights: dict[str, float]) -> None:
        """Raise ValueError where domains and sources are both given shares of a batch."""
        if self.sources and domain_weights:
            raise ValueError(
                f"data.sources has {sorted(self.sources)} and domain_weights has "
                f"{sorted(domain_weights)}: a batch is mixed by one of them; remove the other"
            )
