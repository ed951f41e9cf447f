"""What labelling a corpus is told."""

from typing import ClassVar, Self

from pydantic import PositiveInt, model_validator

from components.engine_config import EngineConfig
from model.config import Config


class AnnotateConfig(Config):
    """Running the annotator over a corpus."""

    HOW: ClassVar[tuple[str, ...]] = ("engine",)

    batch_chunks: PositiveInt = 4_096
    """Scored together, times the concepts at 4 bytes a score: 4,096 × 33,732 are 0.6 GB."""

    shard_chunks: PositiveInt = 65_536
    """Chunks of a part of the table; a killed run loses no more than the parts being written."""

    engine: EngineConfig = EngineConfig()

    @model_validator(mode="after")
    def _batches_fill_shards(self) -> Self:
        # Other batches may give scores other last bits: their bounds must not follow the shards'.
        if self.shard_chunks % self.batch_chunks:
            whole = self.batch_chunks * max(1, self.shard_chunks // self.batch_chunks)
            raise ValueError(
                f"shard_chunks is {self.shard_chunks}, no multiple of batch_chunks "
                f"{self.batch_chunks}; try {whole}"
            )
        return self
