"""A concept's presence in a text, judged from outside the network: the annotator of Atlas.

The text alone is embedded; neither prompt nor network has a say. 0.5 is the annotator's own
threshold: "just enough" for every concept, whatever its prevalence.

Shape suffixes used in this file:
    N text   K known concept   D width of a vector
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import annotators, contracts, embedding
from components.annotators import Annotator
from components.embedding import Embedder

Floats = NDArray[np.float32]
_NOTHING = "."
"""What is embedded for a text of no characters."""


@dataclass(frozen=True)
class Detector:
    """The annotator with the encoder that makes its vectors."""

    annotator: Annotator
    encoder: Embedder

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Unit vectors (N, D)."""
        return self.encoder.embed([text if text.strip() else _NOTHING for text in texts])

    def presence(self, texts: Sequence[str]) -> Floats:
        """Probabilities (N, K), 0.5 at the threshold."""
        scores_NK = self.annotator.scorer.scores(self.vectors(texts))
        return self.annotator.calibration.probability(scores_NK)


def open_detector(annotator: Path, checkpoint: Path) -> Detector:
    """The detector of a checkpoint's own library. Raises ContractError for another's."""
    found = annotators.load(annotator)
    facts = contracts.json_file(annotator, annotators.FACTS_FILE)
    theirs, ours = (
        facts["library_digest"],
        contracts.json_file(checkpoint, "concepts.json")["digest"],
    )
    if theirs != ours:
        raise contracts.ContractError(
            f"{annotator} labels with library {str(theirs)[:12]}…, but {checkpoint} was trained "
            f"with {str(ours)[:12]}…; take the annotator of the checkpoint's own run"
        )
    encoder = embedding.load(str(found.encoder))
    if isinstance(found.encoder, str) and encoder.digest != facts["encoder_digest"]:
        raise contracts.ContractError(
            f"{annotator} was trained on vectors of {facts['encoder']} "
            f"({str(facts['encoder_digest'])[:12]}…), but here it is {encoder.digest[:12]}…; "
            f"install the encoder of that digest, or run `clearstory rerun --from learn`"
        )
    return Detector(found, encoder)
