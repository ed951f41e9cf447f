"""A checkpoint opened for people: network, tokenizer, names of concepts, training text.

    weights.safetensors    ours: concepts.json, tokenizer.json and a seal are beside it
    model.safetensors      the released format, which has neither names nor a tokenizer of its own

Where there is no tokenizer, prompts are token ids and tokens are shown as their ids; where there is
no library, a concept is called "concept 17". Both are said in `notes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from components import contracts
from components.explaining.schema import ConceptFound
from components.explaining.vocabulary import Vocabulary
from components.library import KnownConcept, known_concepts
from components.manifests import MANIFEST_FILE, digest_of
from components.retrieval import Retriever, open_index
from components.steering_calibration import Calibration
from components.steering_calibration import load as load_calibration
from components.unknown_names import UnknownName
from components.unknown_names import load as load_names
from model import checkpoint as checkpoints
from model import released
from model.checkpoint import CheckpointError
from model.directions import ConceptRef
from model.language_model import LanguageModel
from model.tokenizer import Tokenizer

_RELEASED = ("model.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True)
class Opened:
    """What explanations need. One network: not to be used from two threads at once."""

    lm: LanguageModel
    tokenizer: Tokenizer | None
    vocabulary: Vocabulary
    retriever: Retriever | None
    calibration: Calibration | None
    digest: str
    notes: tuple[str, ...]

    @property
    def max_length(self) -> int:
        return self.lm.config.backbone.max_length


def open_checkpoint(
    checkpoint: Path, *, index: Path | None, names: Path | None, calibration: Path | None
) -> Opened:
    """Open a checkpoint, and whatever belongs to it. Raises ValueError for what does not fit.

    `names` are UnknownNames@1, `calibration` Calibration@1; either may be left out.
    """
    if not checkpoint.is_dir():
        raise CheckpointError(
            f"{checkpoint} is no folder; give the folder of a checkpoint, which has "
            f"{checkpoints.WEIGHTS} or {_RELEASED[0]}"
        )
    for folder in (index, names, calibration):
        if folder is not None and not folder.exists():
            raise CheckpointError(f"there is no folder {folder}; name one that a run has made")
    ours = (checkpoint / MANIFEST_FILE).is_file() or (checkpoint / checkpoints.WEIGHTS).is_file()
    if not ours and not any((checkpoint / name).is_file() for name in _RELEASED):
        raise CheckpointError(
            f"{checkpoint} has neither {checkpoints.WEIGHTS} nor {_RELEASED[0]}; give the folder "
            f"of a checkpoint"
        )
    if ours:
        digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
        lm = checkpoints.load(checkpoint)
    else:
        if index is not None:
            raise CheckpointError(
                f"{checkpoint} is in the released format, and an index reads the states of the "
                f"checkpoint it was built with, one of a run here; leave out --index"
            )
        digest = _weights_digest(checkpoint)
        lm = released.load(checkpoint)
    _check_finite(lm, checkpoint)
    notes: list[str] = []
    return Opened(
        lm,
        _tokenizer(checkpoint, lm, notes),
        _vocabulary(checkpoint, lm, notes, _unknown(names, digest)),
        None if index is None else open_index(index, checkpoint),
        None if calibration is None else load_calibration(calibration, digest),
        digest,
        tuple(notes),
    )


def _weights_digest(folder: Path) -> str:
    """Of a single file its own, of shards that of the table that lists them."""
    first = next(folder / name for name in _RELEASED if (folder / name).is_file())
    return digest_of(first).sha256


def _check_finite(lm: LanguageModel, folder: Path) -> None:
    broken = [name for name, values in lm.named_parameters() if not torch.isfinite(values).all()]
    if broken:
        raise CheckpointError(
            f"{folder} holds weights that are not finite, in {len(broken)} matrices such as "
            f"{broken[0]}: nothing it writes would mean anything. Open an earlier checkpoint"
        )


def _tokenizer(folder: Path, lm: LanguageModel, notes: list[str]) -> Tokenizer | None:
    path = folder / "tokenizer.json"
    if not path.is_file():
        notes.append(
            "this checkpoint has no tokenizer.json: prompts are token ids, and tokens are shown "
            "as ids"
        )
        return None
    tokenizer = Tokenizer(path)
    if tokenizer.specials.mask_id != lm.config.mask_id:
        raise CheckpointError(
            f"{path} has <|mask|> at {tokenizer.specials.mask_id}, the network at "
            f"{lm.config.mask_id}; it is another vocabulary's. Copy the right one here"
        )
    return tokenizer


def _unknown(names: Path | None, digest: str) -> Mapping[int, UnknownName]:
    return {} if names is None else load_names(names, digest).by_id


def _vocabulary(
    folder: Path, lm: LanguageModel, notes: list[str], unknown: Mapping[int, UnknownName]
) -> Vocabulary:
    if lm.bottleneck is None:
        notes.append(f"a network of the family {lm.config.family} has no concepts")
        return Vocabulary((), 0, {})
    sizes = lm.bottleneck.config
    if (folder / "concepts.json").is_file():
        known = tuple(known_concepts(folder))
    else:
        notes.append("this checkpoint has no library: known concepts go by their numbers")
        known = tuple(
            KnownConcept(number, f"concept {number}", "", 0.0) for number in range(sizes.n_known)
        )
    if len(known) != sizes.n_known:
        raise CheckpointError(
            f"{folder / 'concepts.json'} names {len(known)} concepts, the network has "
            f"{sizes.n_known}; it belongs to another checkpoint. Copy the right one here"
        )
    return Vocabulary(known, sizes.n_unknown, unknown)


def find_concepts(opened: Opened, query: str, limit: int) -> list[ConceptFound]:
    """Concepts whose names are like the query, best first; the first ones for an empty query."""
    return [with_strength(opened, one) for one in opened.vocabulary.find(query, limit)]


def with_strength(opened: Opened, found: ConceptFound) -> ConceptFound:
    """A concept with the strength that steering found best for it, where it did."""
    if opened.calibration is None:
        return found
    strength = opened.calibration.strength([ConceptRef(found.kind, found.concept_id)], "amplify")
    own = strength.logits if strength.source == "own" else None
    return found.model_copy(update={"calibrated_logits": own})
