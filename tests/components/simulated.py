"""A Tokens artifact of any size whose shards are made up when they are read."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from components import contracts, manifests
from components.manifests import MANIFEST_FILE, FileDigest
from components.ranged import Range
from components.shards import RECORD, Shard
from model.tokenizer import N_BYTES, SPECIALS, train

SPAN_TOKENS, BLOCK = 100, 64
VOCAB_SIZE = N_BYTES + len(SPECIALS)


class SimulatedPlace:
    """Shards of equal length, spans of 100 tokens, token ids that follow from the position."""

    def __init__(self, folder: Path, n_shards: int, shard_tokens: int) -> None:
        assert shard_tokens % SPAN_TOKENS == 0
        self.folder, self.n_tokens = folder, n_shards * shard_tokens
        self.touched: set[str] = set()
        self.n_bytes_read = 0
        self._shard_tokens = shard_tokens
        self._n_spans = shard_tokens // SPAN_TOKENS
        self._write(n_shards)

    def __str__(self) -> str:
        return "simulated"

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """See Place."""
        return [self._content(wanted) for wanted in ranges]

    def close(self) -> None:
        """See Place."""

    def local(self, name: str) -> Path:
        """See Place."""
        return self.folder / name

    def n_bytes(self, name: str) -> int:
        """See Place."""
        path = self.folder / name
        return path.stat().st_size if path.is_file() else self._promise(name).bytes

    def digest(self, name: str) -> FileDigest:
        """See Place."""
        path = self.folder / name
        self.touched.add(name)
        return manifests.digest_of(path) if path.is_file() else self._promise(name)

    def _write(self, n_shards: int) -> None:
        self.folder.mkdir(parents=True)
        train([], VOCAB_SIZE, self.folder / "tokenizer.json")
        shards = [
            Shard(
                stream="stream.npy" if k == 0 else f"shards/{k:05d}/stream.npy",
                spans=f"shards/{k:05d}/spans.npy", blocks=f"shards/{k:05d}/blocks.npy",
                n_tokens=self._shard_tokens, n_spans=self._n_spans,
            )
            for k in range(n_shards)
        ]  # fmt: skip
        held_out = self.n_tokens - 2 * BLOCK
        splits = {
            "train": [0, held_out], "valid": [held_out, held_out + BLOCK],
            "test": [held_out + BLOCK, self.n_tokens],
        }  # fmt: skip
        facts = {
            "vocab_size": VOCAB_SIZE, "block": BLOCK, "splits": splits,
            "shards": [shard.model_dump() for shard in shards],
        }  # fmt: skip
        (self.folder / "tokens.json").write_text(json.dumps(facts))
        names = [name for shard in shards for name in (shard.stream, shard.spans, shard.blocks)]
        files = {name: self._promise(name) for name in (*names, contracts.ROWS_FILE)} | {
            name: manifests.digest_of(self.folder / name)
            for name in ("tokenizer.json", "tokens.json")
        }
        manifest = manifests.sealed(
            contracts.TOKENS.name, contracts.TOKENS.version, n_shards * self._n_spans, files
        )
        (self.folder / MANIFEST_FILE).write_text(manifest.model_dump_json())

    def _kind(self, name: str) -> tuple[np.dtype, int]:
        if name.endswith("stream.npy"):
            return np.dtype("<u2"), self._shard_tokens
        if name.endswith("spans.npy"):
            return RECORD, self._n_spans
        return np.dtype("<u4"), -(-self._shard_tokens // BLOCK) + 1

    def _header(self, name: str) -> bytes:
        dtype, length = self._kind(name)
        said = {
            "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
            "shape": (length,),
        }  # fmt: skip
        out = io.BytesIO()
        np.lib.format.write_array_header_1_0(out, said)
        return out.getvalue()

    def _promise(self, name: str) -> FileDigest:
        dtype, length = self._kind(name)
        return FileDigest(
            bytes=len(self._header(name)) + length * dtype.itemsize, sha256=f"{len(name):064x}"
        )

    def _content(self, wanted: Range) -> bytes:
        self.touched.add(wanted.file)
        self.n_bytes_read += wanted.n_bytes
        header = self._header(wanted.file)
        if wanted.start == 0:
            return header.ljust(wanted.n_bytes, b"\0")[: wanted.n_bytes]
        dtype, _ = self._kind(wanted.file)
        first, end = ((edge - len(header)) // dtype.itemsize for edge in (wanted.start, wanted.end))
        places = np.arange(first, end)
        if wanted.file.endswith("stream.npy"):
            return (places % N_BYTES).astype(dtype).tobytes()
        if wanted.file.endswith("blocks.npy"):
            rows = np.minimum(places * BLOCK // SPAN_TOKENS, self._n_spans - 1)
            return rows.astype(dtype).tobytes()
        record_N = np.zeros(len(places), dtype=dtype)
        record_N["token_start"], record_N["chunk_id"] = places * SPAN_TOKENS, places
        record_N["labelled"], record_N["concept_ids"] = 1, -1
        record_N["concept_ids"][:, 0] = places % 7
        return record_N.tobytes()
