"""A network and its tokenizer from one folder, in our format or in the released one."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from components import contracts, manifests
from model import checkpoint, released
from model.checkpoint import CheckpointError
from model.language_model import LanguageModel
from model.tokenizer import Tokenizer

TOKENIZER_FILE = "tokenizer.json"
_RELEASED_WEIGHTS = "model*.safetensors"


@dataclass(frozen=True)
class Network:
    """What reads and writes text."""

    lm: LanguageModel
    tokenizer: Tokenizer
    digest: str
    """Of the sealed artifact, or of the released files."""


def open_network(folder: Path) -> Network:
    """Open a checkpoint. CheckpointError and ContractError name what is wrong with the folder."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder; give that of a checkpoint")
    if (folder / manifests.MANIFEST_FILE).is_file():
        digest = contracts.verify(folder, contracts.CHECKPOINT).digest
        lm = checkpoint.load(folder)
    elif any(folder.glob(_RELEASED_WEIGHTS)):
        digest, lm = _digest(folder), released.load(folder)
    else:
        raise CheckpointError(
            f"{folder} has neither {manifests.MANIFEST_FILE}, as training seals a checkpoint, nor "
            f"{_RELEASED_WEIGHTS}, as released; give the folder of one of both"
        )
    if not (folder / TOKENIZER_FILE).is_file():
        raise CheckpointError(
            f"{folder} has no {TOKENIZER_FILE}, which the released format leaves out; write one "
            f"from the vocabulary it was trained with: model.tokenizer.adopt(given, path)"
        )
    tokenizer = Tokenizer(folder / TOKENIZER_FILE)
    _check(lm, tokenizer, folder)
    return Network(lm, tokenizer, digest)


def _check(lm: LanguageModel, tokenizer: Tokenizer, folder: Path) -> None:
    config = lm.config
    ours = (config.bos_id, config.eos_id, config.pad_id, config.mask_id, config.end_of_chunk_id)
    ids = tokenizer.specials
    theirs = (ids.bos_id, ids.eos_id, ids.pad_id, ids.mask_id, ids.end_of_chunk_id)
    if ours != theirs:
        raise CheckpointError(
            f"{folder / TOKENIZER_FILE} numbers bos, eos, pad, mask and end of chunk {theirs}, the "
            f"network {ours}; put the tokenizer there that the network was trained with"
        )


def _digest(folder: Path) -> str:
    """Of a released checkpoint's own files."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob(_RELEASED_WEIGHTS), *folder.glob("*.json")]):
        found.update(f"{path.name} {manifests.digest_of(path).sha256}\n".encode())
    return found.hexdigest()
