"""Vectors of texts, kept between calls: the same texts are encoded once.

    FOLDER/<digest of encoder and texts>.npy     float16 (N, D), row = text

Shape suffixes: N texts   D width of a vector
"""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from components.embedding import Embedder, Floats


def embed(texts: Sequence[str], encoder: Embedder, folder: Path) -> Floats:
    """Unit vectors (N, D), one a text, in order; equal texts are encoded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    kept = folder / f"{_digest(rows, encoder)}.npy"
    if not kept.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write(encoder.embed(list(rows)), kept)
    unique_ND = np.load(kept).astype(np.float32)
    return np.asarray(unique_ND[[rows[text] for text in texts]], dtype=np.float32)


def _digest(texts: dict[str, int], encoder: Embedder) -> str:
    found = hashlib.sha256(encoder.digest.encode())
    for text in texts:
        found.update(hashlib.sha256(text.encode()).digest())
    return found.hexdigest()[:32]


def _write(vectors_ND: Floats, path: Path) -> None:
    """Written beside, then renamed: a kept file is whole."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as scratch:
        np.save(scratch, vectors_ND.astype(np.float16))
    os.replace(scratch.name, path)
