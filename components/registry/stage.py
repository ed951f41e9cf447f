"""Turn a checkpoint and its scores into a model version with a card (paper §10-12).

    version.json    name, alias, digest of the checkpoint, scores: what the registry is told
    card.md         what it is, what it was made from, what was measured, what that leaves open

Every sentence of the card comes from a file of the two artifacts.
"""

import json
from pathlib import Path

from components import contracts
from components.registry.card import Evidence, ScoreFact, write_card
from components.registry.config import PromoteConfig
from model import accounting
from model.config import LanguageModelConfig


def promote(checkpoint: Path, scores: Path, version: Path, config: PromoteConfig) -> int:
    """Write the version. Returns the number of scores it carries."""
    offered = contracts.verify(checkpoint, contracts.CHECKPOINT)
    measured = contracts.verify(scores, contracts.SCORES)
    network = LanguageModelConfig.model_validate_json((checkpoint / "config.json").read_text())
    library = contracts.json_file(checkpoint, "concepts.json")
    found = {
        name: ScoreFact.model_validate(score)
        for name, score in contracts.json_file(scores, "scores.json").items()
    }
    evidence = Evidence(
        name=config.name,
        alias=config.alias,
        checkpoint_digest=offered.digest,
        scores_digest=measured.digest,
        library_digest=str(library["digest"]),
        network=network,
        parameters=accounting.parameters(network),
        training=contracts.json_file(checkpoint, "training.json"),
        scores=found,
    )
    text = {
        "name": config.name,
        "alias": config.alias,
        "checkpoint_digest": offered.digest,
        "scores_digest": measured.digest,
        "library_digest": evidence.library_digest,
        "family": network.family,
        "n_parameters": evidence.parameters.total,
        "scores": {name: score.model_dump() for name, score in found.items()},
    }
    (version / "version.json").write_text(json.dumps(text, indent=1) + "\n")
    (version / "card.md").write_text(write_card(evidence))
    contracts.seal(version, contracts.MODEL_VERSION)
    return len(found)
