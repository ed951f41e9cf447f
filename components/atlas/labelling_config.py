"""What labelling a corpus is told."""

from pydantic import PositiveInt

from model.config import Config


class AnnotateConfig(Config):
    """Running the annotator over a corpus."""

    batch_chunks: PositiveInt = 4_096
