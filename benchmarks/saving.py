"""A savepoint that is hashed while it is written, against a plain write and fsync.

Wall seconds, since waiting for the disk is what is measured; in turn, the least of each.
"""

import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from components import savepoints
from components.manifests import FileDigest
from components.training_state import Topology, TrainingState
from model.hashed_file import write_tensors
from model.progress import Progress

N_TENSORS, NUMBERS = 24, 4_000_000
"""384 MB of float32."""

REPEATS = 5
MOST_WRITING, MOST_COMMIT = 1.3, 0.05


@dataclass(frozen=True)
class _Turn:
    """Wall seconds of one of each."""

    plain: float
    hashed: float
    commit: float
    agrees: bool


def contest() -> str:
    """One line: write and hash over plain write, and the commit's share of the whole."""
    draw = torch.Generator().manual_seed(0)
    tensors = {f"weight.{k}": torch.randn(NUMBERS, generator=draw) for k in range(N_TENSORS)}
    with tempfile.TemporaryDirectory() as place:
        pieces = _pieces(tensors, Path(place))
        turns = [_turn(tensors, pieces, Path(place) / str(turn)) for turn in range(REPEATS)]
    plain, hashed = min(turn.plain for turn in turns), min(turn.hashed for turn in turns)
    commit = min(turn.commit for turn in turns) / hashed
    size = sum(tensor.nbytes for tensor in tensors.values()) / 1e6
    agreement = "equal" if all(turn.agrees for turn in turns) else "DIFFER"
    return (
        f"{f'savepoint of {size:.0f} MB':<32} plain     {plain:8.3f} s   hashed {hashed:6.3f} s   "
        f"{hashed / plain:4.2f}× (at most {MOST_WRITING})   commit {commit:.1%} of it (at most "
        f"{MOST_COMMIT:.0%})   digests {agreement} (n={REPEATS})"
    )


def _turn(tensors: dict[str, Tensor], pieces: list[bytes | memoryview], folder: Path) -> _Turn:
    folder.mkdir()
    began = time.perf_counter()
    _plain(pieces, folder / "plain")
    plain = time.perf_counter()
    attempt = savepoints.attempt(folder, 0, permanent=False)
    savepoints.begin(attempt)
    written = write_tensors(tensors, attempt / "state.safetensors")
    hashed = time.perf_counter()
    digest = FileDigest(bytes=written.bytes, sha256=written.sha256)
    savepoints.commit(attempt, _state(), {"state.safetensors": digest})
    committed = time.perf_counter()
    agrees = hashlib.sha256((folder / "plain").read_bytes()).hexdigest() == written.sha256
    return _Turn(plain - began, hashed - plain, committed - hashed, agrees)


def _plain(pieces: list[bytes | memoryview], path: Path) -> None:
    """The same bytes, written and synced, nothing hashed."""
    with path.open("wb", buffering=0) as out:
        for piece in pieces:
            view = memoryview(piece).cast("B")
            while view:
                view = view[out.write(view) or 0 :]
        os.fsync(out.fileno())


def _pieces(tensors: dict[str, Tensor], place: Path) -> list[bytes | memoryview]:
    """The bytes of a safetensors file: its header, then every tensor where it lies in memory."""
    write_tensors(tensors, place / "first")
    with (place / "first").open("rb") as file:
        length = file.read(8)
        header = length + file.read(int.from_bytes(length, "little"))
    return [header, *(tensor.numpy().data for tensor in tensors.values())]


def _state() -> TrainingState:
    return TrainingState(
        standing=Progress().standing(), tokens=0, alpha_known=1.0, alpha_unknown=1.0,
        loader={}, topology=Topology(ranks=1, zero_stage=1, micro_batches=1), computes="",
    )  # fmt: skip
