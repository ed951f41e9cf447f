"""Committed artifacts in folders: lease, attempt, commit, verified reuse (platform, F).

    <root>/stages/<stage>/<key>/<output>/…      committed: every file matches its manifest
    <root>/stages/<stage>/<key>/key.json        the parts of the key
    <root>/stages/<stage>/<key>/made.json       when, where and from what it was made
    <root>/attempts/<stage>-<key>-…/            being written; removed when the attempt ends
    <root>/leases/<stage>-<key>                 locked by the one process that may write that key
    <root>/elsewhere/<digest>/                  manifests alone of artifacts in S3
    <root>/scratch/<stage>-<lineage>/           outlives failed attempts: savepoints of long stages

A reader sees the old state or the new one: an attempt becomes the artifact by one rename.

`place(location, …)` reads an artifact by ranges, in a folder or in S3 (the only home of boto3).
"""

import base64
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from components import contracts, manifests
from components.contracts import Contract, ContractError, Manifest
from components.keys import StageKey
from components.manifests import MANIFEST_FILE, REMOTE
from components.provenance import MADE_FILE, Provenance
from components.ranged import FolderPlace, Head, Place, S3Place
from components.retries import InterruptedTransferError, StorageError, advice, tried
from components.storage import StorageConfig

KEY_CHARS = 20


@dataclass(frozen=True)
class Hit:
    """Outputs that can be reused: each manifest verified just now."""

    outputs: Mapping[str, Manifest]


@dataclass(frozen=True)
class Miss:
    """Why a stage has to run."""

    reason: str


@dataclass(frozen=True)
class Store:
    """A store in a local folder."""

    root: Path

    def folder_of(self, key: StageKey) -> Path:
        """Where the artifacts of a key lie once they are committed."""
        return self.root / "stages" / key.stage / key.digest[:KEY_CHARS]

    @contextmanager
    def lease(self, key: StageKey) -> Iterator[None]:
        """Hold the right to write `key`; a second process waits here until the first is done.

        The lock is the kernel's and goes with its process, so a killed run leaves none behind.
        """
        with locked(self.root / "leases" / f"{key.stage}-{key.digest[:KEY_CHARS]}"):
            yield

    @contextmanager
    def attempt(self, key: StageKey, outputs: Mapping[str, Contract]) -> Iterator[dict[str, Path]]:
        """Fresh, empty folders to write into, one an output; gone when the attempt has ended."""
        parent = self.root / "attempts"
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{key.stage}-{key.digest[:8]}-", dir=parent))
        try:
            for name in outputs:
                (folder / name).mkdir()
            yield {name: folder / name for name in outputs}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def find(self, key: StageKey, outputs: Mapping[str, Contract]) -> Hit | Miss:
        """The committed outputs of `key` if every byte is as committed, else the reason why not."""
        folder = self.folder_of(key)
        if not folder.is_dir():
            return Miss(self._nearest(key))
        try:
            return Hit({name: _located(folder / name, c) for name, c in outputs.items()})
        except ContractError as error:
            return Miss(f"its artifact can no longer be trusted: {error}")

    def commit(
        self,
        key: StageKey,
        attempt: Mapping[str, Path],
        outputs: Mapping[str, Contract],
        made: Provenance,
    ) -> dict[str, Manifest]:
        """Verify what an attempt wrote, make it durable, and put it in place by one rename."""
        for name, contract in outputs.items():
            contracts.verify(attempt[name], contract)
        source = next(iter(attempt.values())).parent
        (source / "key.json").write_text(key.model_dump_json(indent=1))
        (source / MADE_FILE).write_text(made.model_dump_json(indent=1))
        _sync(source)
        target = self.folder_of(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        source.rename(target)
        _sync_folder(target.parent)
        return {name: _located(target / name, contract) for name, contract in outputs.items()}

    def opened(self, manifest: Manifest) -> Path:
        """The verified folder of an artifact; of one in S3, a folder with its manifest alone.

        Stages that read by ranges find in it where the files lie (`components.feeding`).
        """
        if not manifest.location.startswith(REMOTE):
            folder = Path(manifest.location)
            contracts.verify(folder, contracts.ALL[manifest.contract])
            return folder
        folder = self.root / "elsewhere" / manifest.digest[:KEY_CHARS]
        folder.mkdir(parents=True, exist_ok=True)
        manifests.put(manifest, folder)
        return folder

    def _nearest(self, key: StageKey) -> str:
        """What differs from the latest committed run of the same stage."""
        others = sorted(
            (self.root / "stages" / key.stage).glob("*/key.json"), key=lambda p: p.stat().st_mtime
        )
        if not others:
            return "it has not run before"
        differences = key.differences(StageKey.model_validate_json(others[-1].read_text()))
        return f"changed since its last run: {shown(differences)}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the kernel's lock on this file; another process waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:  # explicit: a forked child may still hold a copy of the handle
            fcntl.flock(handle, fcntl.LOCK_UN)


def shown(differences: list[str]) -> str:
    """The first few, cut to what a line can hold."""
    return "; ".join(text if len(text) < 200 else text[:200] + "…" for text in differences[:3])


def _located(folder: Path, contract: Contract) -> Manifest:
    return contracts.verify(folder, contract).model_copy(update={"location": str(folder)})


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def place(location: str, storage: StorageConfig, cache: Path) -> Place:
    """Where the files of an artifact are read: a folder, or `s3://bucket/prefix`.

    Small whole files of the latter are kept in `cache`. Raises StorageError where keys are missing.
    """
    if not location.startswith(REMOTE):
        return FolderPlace(Path(location))
    bucket, _, prefix = location.removeprefix(REMOTE).partition("/")
    return S3Place(S3Bucket(bucket, storage), prefix, cache, storage)


def send(folder: Path, contract: Contract, location: str, storage: StorageConfig) -> Manifest:
    """Copy a verified artifact to `s3://bucket/prefix`, its manifest last: until then, none is
    there. Returns the manifest that says where it lies now."""
    manifest = contracts.verify(folder, contract)
    bucket_name, _, prefix = location.removeprefix(REMOTE).partition("/")
    bucket = S3Bucket(bucket_name, storage)
    try:
        for name in (*manifest.files, MANIFEST_FILE):
            tried(partial(bucket.put, f"{prefix}/{name}", folder / name), storage)
    finally:
        bucket.close()
    return manifest.model_copy(update={"location": location})


class S3Bucket:
    """One bucket of an S3 service, as `components.ranged.Transport`: one try of each request."""

    def __init__(self, bucket: str, storage: StorageConfig) -> None:
        # Imported here: a store in a folder has no use for it, and it takes a quarter of a second.
        import boto3
        from botocore.config import Config as ClientConfig

        self.bucket = bucket
        self._client = boto3.client(
            "s3",
            endpoint_url=storage.endpoint_url or None,
            region_name=storage.region,
            aws_access_key_id=_secret(storage.access_key_variable),
            aws_secret_access_key=_secret(storage.secret_key_variable),
            aws_session_token=os.environ.get(storage.session_token_variable),
            config=ClientConfig(
                retries={"total_max_attempts": 1},  # counted and spaced in `components.retries`
                s3={"addressing_style": "path" if storage.path_style else "virtual"},
                connect_timeout=storage.timeout_seconds,
                read_timeout=storage.timeout_seconds,
                max_pool_connections=storage.parallel_reads,
                response_checksum_validation="when_required",  # a range has no checksum
            ),
        )

    def __str__(self) -> str:
        return f"s3://{self.bucket}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def head(self, key: str) -> Head:
        """See Transport."""
        with self._explained(key):
            said = self._client.head_object(Bucket=self.bucket, Key=key, ChecksumMode="ENABLED")
        return Head(said["ContentLength"], said["ETag"], _whole_sha256(said))

    def get(self, key: str, start: int, n_bytes: int, etag: str) -> bytes:
        """See Transport."""
        with self._explained(key):
            found = self._client.get_object(
                Bucket=self.bucket,
                Key=key,
                IfMatch=etag,
                Range=f"bytes={start}-{start + n_bytes - 1}",
            )
            body: bytes = found["Body"].read()
        return body

    def put(self, key: str, path: Path) -> None:
        """Send a file; the service keeps its SHA-256, which `head` gives back."""
        with self._explained(key), path.open("rb") as body:
            self._client.put_object(
                Bucket=self.bucket, Key=key, Body=body, ChecksumAlgorithm="SHA256"
            )

    @contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        """The client's errors as ours, by whether another try may help."""
        from botocore.exceptions import BotoCoreError, ClientError

        where = f"{self}/{key}"
        try:
            yield
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status == 429 or status >= 500:
                raise InterruptedTransferError(f"{where}: {error}") from error
            raise StorageError(f"{where}: {error}. {advice(status)}") from error
        except BotoCoreError as error:  # no connection, timeouts, a body that ended early
            raise InterruptedTransferError(f"{where}: {error}") from error


def _secret(variable: str) -> str:
    if not os.environ.get(variable):
        raise StorageError(
            f"the environment variable {variable} holds no key for S3; set it, or name another in "
            f"the storage settings"
        )
    return os.environ[variable]


def _whole_sha256(said: Mapping[str, str]) -> str:
    """The SHA-256 of a whole object in hexadecimal; empty if there is none or only of its parts."""
    found = said.get("ChecksumSHA256", "")
    if not found or "-" in found or said.get("ChecksumType", "FULL_OBJECT") != "FULL_OBJECT":
        return ""
    return base64.b64decode(found).hex()
