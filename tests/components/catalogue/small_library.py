"""Libraries of a few concepts about the sea, in the space of the hashing encoder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from components import nearest
from components.hashing import HashingEmbedder
from components.library import Concept, Library, freeze, open_library

SEA: Mapping[str, tuple[str, ...]] = {
    "Sailing ships": ("sailing ship", "ship under sail", "rigging of a ship"),
    "Storms": ("storm at sea", "storm", "gale"),
    "Whales": ("whale", "whale hunting", "sperm whale"),
    "Sea voyages": ("sea voyage", "voyage by sea"),
}
"""Tags by name."""

HISTORY = (
    {"action": "drop", "names": ["spars"], "reason": "on 1 chunks, fewer than needed"},
    {"action": "merge", "names": ["Whales", "Whaling"], "reason": "0.85 alike; now Whales"},
)


def write(
    folder: Path, tags: Mapping[str, Sequence[str]] = SEA, encoder_digest: str = ""
) -> Library:
    """Freeze a library in a new folder and open it."""
    folder.mkdir(parents=True)
    encoder = HashingEmbedder()
    centroids_KD = nearest.unit(
        np.stack([encoder.embed(members).mean(axis=0) for members in tags.values()])
    )
    rows = [
        {
            "concept_id": i, "name": name, "description": f"Text about {name.lower()}.",
            "kind": ("content", "tone")[i % 2], "parent": ("Travel", "Nature")[i % 2],
            "taxonomy": f"{('Travel', 'Nature')[i % 2]} / {name}", "prevalence": 0.25 / (i + 1),
            "n_chunks": 9 - i, "coherence": 0.75, "members": list(members),
        }
        for i, (name, members) in enumerate(tags.items())
    ]  # fmt: skip
    facts = {
        "encoder": encoder.name, "encoder_digest": encoder_digest or encoder.digest,
        "n_concepts": len(rows), "n_tags": 12, "n_tagged_chunks": 36, "n_clusters": len(rows) + 2,
        "coherence_curve": [{"k": len(rows) + 2, "coherence": 0.75}], "history": list(HISTORY),
    }  # fmt: skip
    freeze(rows, centroids_KD, facts, folder)
    return open_library(folder)


def names(concepts: Sequence[Concept]) -> list[str]:
    return [concept.name for concept in concepts]
