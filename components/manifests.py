"""The manifest of an artifact: what was sealed, file by file.

It holds contract and version, the number of rows, and the size and SHA-256 of every other file.
`digest` covers that and nothing else: the same bytes have the same digest wherever they lie.
"""

import hashlib
import json
import os
from pathlib import Path

from pydantic import NonNegativeInt, ValidationError

from model.config import Config

MANIFEST_FILE = "manifest.json"


class ContractError(ValueError):
    """A folder is not the artifact it should be. The message says what is wrong and the way out."""


class FileDigest(Config):
    """Size in bytes and SHA-256 of one file."""

    bytes: NonNegativeInt
    sha256: str


class Manifest(Config):
    """What `manifest.json` holds, and all that KFP ever carries of an artifact."""

    contract: str
    version: str
    location: str
    """Folder of the files; `.` in the folder's own manifest."""

    rows: NonNegativeInt
    files: dict[str, FileDigest]
    digest: str


def put(manifest: Manifest, folder: Path) -> None:
    """Write `manifest.json` durably and by rename: it is there whole, or not at all."""
    partial = folder / f"{MANIFEST_FILE}.partial"
    with partial.open("w") as handle:
        handle.write(manifest.model_dump_json(indent=1))
        handle.flush()
        os.fsync(handle.fileno())
    partial.rename(folder / MANIFEST_FILE)


def manifest_of(folder: Path) -> Manifest:
    """The manifest as written, nothing verified. Raises ContractError where there is none."""
    path = folder / MANIFEST_FILE
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ContractError(
            f"{folder} is not an artifact: it has no {MANIFEST_FILE} (the stage that writes it "
            f"did not finish). Run `clearstory run` again: finished stages are reused."
        ) from None
    except ValidationError as error:
        raise ContractError(f"{path} is not a manifest: {error}") from error


def json_file(folder: Path, name: str) -> dict[str, object]:
    """One of an artifact's JSON files, as a dictionary."""
    loaded = json.loads((folder / name).read_text())
    if not isinstance(loaded, dict):
        raise ContractError(f"{folder / name} holds a {type(loaded).__name__}, not an object.")
    return loaded


def digest_of(path: Path) -> FileDigest:
    """Size and SHA-256 of one file, read in blocks."""
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return FileDigest(bytes=path.stat().st_size, sha256=digest)
