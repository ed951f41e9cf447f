"""UnknownNames@1 of a checkpoint, made up: some concepts named, one unnamed."""

import json
from collections.abc import Mapping
from pathlib import Path

from components import contracts
from components.unknown_names import FACTS_FILE, UNNAMED


def write_names(folder: Path, checkpoint: Path, named: Mapping[int, str]) -> Path:
    """Names of these unknown concepts; one more was tried and stays unnamed."""
    folder.mkdir()
    digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    rows = [
        {
            "concept_id": concept, "name": name, "description": f"Chunks about {name}.",
            "auc": 0.5 if name == UNNAMED else 0.875, "auc_low": 0.4, "auc_high": 0.95,
            "n_chunks": 14, "contribution_share": 0.25 / (concept + 1), "top_tokens": ["rain"],
            "example": "some rain",
        }
        for concept, name in {**named, max(named, default=-1) + 1: UNNAMED}.items()
    ]  # fmt: skip
    facts = {
        "checkpoint_digest": digest, "least_auc": 0.75, "n_tried": len(rows),
        "n_named": len(named), "contribution_share_named": 0.2,
    }  # fmt: skip
    (folder / FACTS_FILE).write_text(json.dumps(facts))
    contracts.write(rows, folder, contracts.UNKNOWN_NAMES)
    return folder
