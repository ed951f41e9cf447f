"""What labelling a corpus is told."""

from typing import ClassVar

from pydantic import PositiveInt

from components.atlas.shard_config import ShardConfig


class AnnotateConfig(ShardConfig):
    """Running the annotator over a corpus."""

    HOW: ClassVar[tuple[str, ...]] = ("engine",)

    batch_chunks: PositiveInt = 4_096
    """Scored together, times the concepts at 4 bytes a score: 4,096 × 33,732 are 0.6 GB."""

    shard_chunks: PositiveInt = 65_536
    """Chunks of a part of the table; a killed run loses no more than the parts being written."""
