"""How work on a whole corpus is cut and by what it is done: `components.atlas.chunk_shards`."""

from typing import Self

from pydantic import PositiveInt, model_validator

from components.engine_config import EngineConfig
from model.config import Config


class ShardConfig(Config):
    """Batches of chunks in shards, shards on an engine."""

    batch_chunks: PositiveInt
    """Computed together."""

    shard_chunks: PositiveInt
    """Written together; a killed run loses no more than the shards that were being written."""

    engine: EngineConfig = EngineConfig()

    @model_validator(mode="after")
    def _batches_fill_shards(self) -> Self:
        # Other batches may give other last bits: their bounds must not follow the shards'.
        if self.shard_chunks % self.batch_chunks:
            whole = self.batch_chunks * max(1, self.shard_chunks // self.batch_chunks)
            raise ValueError(
                f"shard_chunks is {self.shard_chunks}, no multiple of batch_chunks "
                f"{self.batch_chunks}; try {whole}"
            )
        return self
