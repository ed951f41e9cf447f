"""Atlas, stage three: label every chunk of the corpus (paper §4).

Shape suffixes: N chunks   D vector width
"""

from collections.abc import Iterator
from pathlib import Path

from components import annotators, contracts
from components.annotators import Annotator, Floats
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.learning import read_vectors


def annotate(vectors: Path, annotator: Path, labels: Path, config: AnnotateConfig) -> int:
    """Label every chunk. Returns the number of labels written; rows come in chunk order."""
    found = annotators.load(annotator)
    vectors_ND, encoder = read_vectors(vectors)
    trained_on = contracts.json_file(annotator, annotators.FACTS_FILE)["encoder_digest"]
    if encoder["digest"] != trained_on:
        raise contracts.ContractError(
            f"{annotator} was trained on vectors of encoder {str(trained_on)[:12]}…, but {vectors} "
            f"holds those of {str(encoder['digest'])[:12]}…. Run `clearstory rerun --from learn`."
        )
    return contracts.write(_rows(found, vectors_ND, config), labels, contracts.LABELS)


def _rows(
    annotator: Annotator, vectors_ND: Floats, config: AnnotateConfig
) -> Iterator[dict[str, object]]:
    for first in range(0, len(vectors_ND), config.batch_chunks):
        labels = annotator.label(vectors_ND[first : first + config.batch_chunks])
        for row, found in enumerate(labels, start=first):
            for concept_id, score in found:
                yield {"chunk_id": row, "concept_id": concept_id, "score": score}
