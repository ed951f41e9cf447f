"""The manifest of an artifact: what was sealed, file by file.

It holds contract and version, the number of rows, and the size and SHA-256 of every other file.
`digest` covers that and nothing else: the same bytes have the same digest wherever they lie.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pydantic import NonNegativeInt, ValidationError

from model.config import Config

MANIFEST_FILE = "manifest.json"
ROWS_FILE = "rows.parquet"
REMOTE = "s3://"
"""How a location begins that is no folder."""


class ContractError(ValueError):
    """A folder is not the artifact it should be. The message says what is wrong and the way out."""


@dataclass(frozen=True)
class Contract:
    """Name, hand-written version, columns (None: no table) and the files that must be there."""

    name: str
    version: str
    written_by: str
    schema: pa.Schema | None = None
    files: tuple[str, ...] = ()
    command: str = ""
    """What makes it, where that is no stage of a run."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class FileDigest(Config):
    """Size in bytes and SHA-256 of one file."""

    bytes: NonNegativeInt
    sha256: str


class Manifest(Config):
    """What `manifest.json` holds, and all that KFP ever carries of an artifact."""

    contract: str
    version: str
    location: str
    """Folder or `s3://bucket/prefix` of the files; `.` in the folder's own manifest."""

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
    except (FileNotFoundError, NotADirectoryError):
        raise ContractError(
            f"{folder} is not an artifact: it has no {MANIFEST_FILE} (the stage that writes it "
            f"did not finish). Run `clearstory run` again: finished stages are reused."
        ) from None
    except ValidationError as error:
        raise ContractError(f"{path} is not a manifest: {error.errors()[0]['msg']}") from error


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


def sealed(contract: str, version: str, rows: int, files: dict[str, FileDigest]) -> Manifest:
    """A manifest of these files, with its own digest."""
    open_end = Manifest(
        contract=contract, version=version, location=".", rows=rows, files=files, digest=""
    )
    return open_end.model_copy(update={"digest": overall(open_end)})


def overall(manifest: Manifest) -> str:
    """The digest of an artifact: of its contract, its number of rows and its files' digests."""
    files = {name: manifest.files[name].sha256 for name in sorted(manifest.files)}
    facts = [f"{manifest.contract}@{manifest.version}", manifest.rows, files]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def check_files(folder: Path, manifest: Manifest, again: str) -> None:
    """Raise ContractError unless every file of a folder is as its manifest promises."""
    if manifest.location.startswith(REMOTE):
        raise ContractError(
            f"{folder} has the manifest alone: the files of this {manifest.contract} lie at "
            f"{manifest.location}, and only training and mid-training read tokens there. Copy them "
            f"into a folder, and name that as the location"
        )
    for name, expected in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise ContractError(
                f"{path} is gone, {folder} is no longer {manifest.contract}@{manifest.version}. "
                f"{again}"
            )
        check_size(str(path), path.stat().st_size, expected, again)
        check_digest(str(path), digest_of(path), expected, again)


def check_size(path: str, n_bytes: int, expected: FileDigest, again: str) -> None:
    """Raise ContractError unless a file has the size its manifest promises."""
    if n_bytes != expected.bytes:
        raise ContractError(
            f"{path} has {n_bytes} bytes, the manifest says {expected.bytes}. {again}"
        )


def check_digest(path: str, found: FileDigest, expected: FileDigest, again: str) -> None:
    """Raise ContractError unless a file holds the bytes its manifest promises."""
    if found.sha256 != expected.sha256:
        raise ContractError(
            f"{path} was changed after it was written: SHA-256 {found.sha256[:12]}…, the "
            f"manifest says {expected.sha256[:12]}…. {again}"
        )


def again(contract: Contract) -> str:
    """What a person does when an artifact can no longer be trusted."""
    command = contract.command or f"clearstory rerun --from {contract.written_by}"
    return f"Run `{command}` to make it again."


def check_kind(manifest: Manifest, contract: Contract, where: str) -> None:
    """Raise ContractError unless a manifest is of this contract and version."""
    if manifest.contract != contract.name:
        raise ContractError(f"{where} is {manifest.contract}, not {contract}. {again(contract)}")
    if manifest.version != contract.version:
        raise ContractError(
            f"{where} is {contract.name}@{manifest.version}; this code reads {contract}. "
            f"{again(contract)}"
        )


def check_whole(manifest: Manifest, contract: Contract, where: str) -> None:
    """Raise ContractError unless a manifest lists the contract's files and is as it was sealed."""
    missing = [name for name in required(contract) if name not in manifest.files]
    if missing or manifest.digest != overall(manifest):
        raise ContractError(
            f"{where}/{MANIFEST_FILE} was edited (missing {missing}). {again(contract)}"
        )


def required(contract: Contract) -> tuple[str, ...]:
    """The files that an artifact of this contract cannot be without."""
    return contract.files if contract.schema is None else (ROWS_FILE, *contract.files)
