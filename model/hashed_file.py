"""Files whose SHA-256 is known as soon as they are written: hashing runs beside writing.

    with HashedFile(path) as out:       out.write(...) as often as wanted
        ...
    out.written                         bytes and SHA-256; the file is on the disk by then

A checkpoint must be hashed and must be durable. One after the other, each would wait for the
other's gigabytes; here a thread hashes what was handed over while the disk takes it.
"""

import hashlib
import json
import os
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import Tensor

_PIECE_BYTES = 4 << 20
_PIECES = 16
"""What the hash may lag behind: 64 MiB of copies, in buffers used again and again."""


@dataclass(frozen=True)
class Written:
    """Size in bytes and SHA-256 of a file that was written and synced to disk."""

    bytes: int
    sha256: str


class HashedFile:
    """A new file, open for writing from its start to its end."""

    written: Written

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._digest = hashlib.sha256()
        self._n_bytes = 0
        self._waiting: queue.Queue[memoryview] = queue.Queue()
        self._free: queue.Queue[bytearray] = queue.Queue()
        self._n_buffers = 0
        self._thread = threading.Thread(target=self._hash, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if error is None:
                os.fsync(self._file.fileno())
        finally:
            self._waiting.put(memoryview(b""))
            self._thread.join()
            self._file.close()
        if error is None:
            self.written = Written(self._n_bytes, self._digest.hexdigest())

    def write(self, data: "bytes | memoryview") -> int:
        """Append. The caller may reuse its memory at once: what is hashed later is a copy."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _PIECE_BYTES):
            piece = view[start : start + _PIECE_BYTES]
            copy = memoryview(self._buffer())[: len(piece)]
            copy[:] = piece
            self._waiting.put(copy)
            while piece:
                piece = piece[self._file.write(piece) or 0 :]
        self._n_bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Nothing is held back; writers of other people's formats ask for it."""

    def _buffer(self) -> bytearray:
        """One that is free, a new one while there are few, or the next one that was hashed."""
        if self._free.empty() and self._n_buffers < _PIECES:
            self._n_buffers += 1
            return bytearray(_PIECE_BYTES)
        return self._free.get()

    def _hash(self) -> None:
        while piece := self._waiting.get():
            self._digest.update(piece)
            assert isinstance(piece.obj, bytearray)
            self._free.put(piece.obj)


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> Written:
    """Float32 tensors as a safetensors file, one after the other through `HashedFile`."""
    header: dict[str, object] = {}
    start = 0
    for name, tensor in tensors.items():
        assert tensor.dtype == torch.float32, f"{name} is {tensor.dtype}"
        end = start + 4 * tensor.numel()
        header[name] = {
            "dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end],
        }  # fmt: skip
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the format wants its data aligned to eight bytes
    with HashedFile(path) as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        for tensor in tensors.values():
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            if flat.numel():
                out.write(flat.numpy().data)
    return out.written
