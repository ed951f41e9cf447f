"""A text encoder without a network: a text's vector is a weighted sum of vectors of its pieces.

    x_t  ∝  √count_t · idf_t, of length one       v  =  unit(Σ_t x_t · w_t)

The table w is learned from vectors that another encoder made of texts of the corpus: ridge
regression of them on x, whose normal equations conjugate gradients solve for all columns at once.
It takes the other encoder's word pieces, and its place where nothing but speed is missing.

    encoder.safetensors    table_VD float16 · idf_V
    tokenizer.json         of the encoder it was learned from
    encoder.json           digest of both, whom it was learned from, on how many texts, how near

Shape suffixes: N texts   V word pieces   D width of a vector
"""

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy import sparse
from tokenizers import Tokenizer

Floats = NDArray[np.float32]
PREFIX = "static:"
TABLE_FILE, TOKENIZER_FILE, FACTS_FILE = "encoder.safetensors", "tokenizer.json", "encoder.json"


class EncoderError(ValueError):
    """A folder that holds no static encoder, or another than was written there."""


@dataclass(frozen=True)
class Table:
    """What is learned."""

    idf_V: Floats
    table_VD: NDArray[np.float16]

    @cached_property
    def _table_VD(self) -> Floats:
        return self.table_VD.astype(np.float32)

    def vectors(self, counts_NV: sparse.csr_array) -> Floats:
        """Unit vectors (N, D) of texts by how often they hold each piece."""
        vectors_ND = _scaled(counts_NV, self.idf_V) @ self._table_VD
        length_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
        return np.asarray(vectors_ND / np.maximum(length_N1, 1e-12), dtype=np.float32)


class StaticEncoder:
    """The encoder of a folder, by the name `static:FOLDER`."""

    def __init__(self, folder: Path) -> None:
        facts = _facts(folder)
        tensors = load_file(folder / TABLE_FILE)
        self.name = f"{PREFIX}{folder}"
        self.digest = str(facts["digest"])
        self.max_wordpieces = int(str(facts["max_wordpieces"]))
        self._table = Table(tensors["idf_V"], tensors["table_VD"])
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))

    @property
    def width(self) -> int:
        return self._table.table_VD.shape[1]

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors (N, D), one a text, in order; no other text changes them."""
        return self._table.vectors(counts(texts, self._tokenizer, self.max_wordpieces))


def counts(texts: Sequence[str], tokenizer: Tokenizer, max_wordpieces: int) -> sparse.csr_array:
    """How often each text, cut at `max_wordpieces`, holds each word piece (N, V)."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_wordpieces)
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    ids = [each.ids for each in encoded]
    ends = np.cumsum([0, *(len(each) for each in ids)])
    pieces = np.fromiter(itertools.chain.from_iterable(ids), dtype=np.int32, count=int(ends[-1]))
    ones = np.ones(len(pieces), dtype=np.float32)
    counts_NV = sparse.csr_array(
        (ones, pieces, ends), shape=(len(texts), tokenizer.get_vocab_size())
    )
    counts_NV.sum_duplicates()
    return counts_NV


def learn(
    counts_NV: sparse.csr_array, vectors_ND: Floats, *, ridge: float, n_iterations: int
) -> Table:
    """The table whose vectors come nearest to those of another encoder."""
    n_texts, n_pieces = counts_NV.shape
    texts_of_V = np.bincount(counts_NV.indices, minlength=n_pieces)
    idf_V = np.log((n_texts + 1) / (texts_of_V + 1)).astype(np.float32)
    table_VD = _ridge_regression(_scaled(counts_NV, idf_V), vectors_ND, ridge, n_iterations)
    return Table(idf_V, table_VD.astype(np.float16))


def save(
    table: Table, tokenizer: Tokenizer, folder: Path, *, max_wordpieces: int,
    facts: dict[str, object],
) -> StaticEncoder:  # fmt: skip
    """Write an encoder into a folder, with what is told of it, and open it."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {"table_VD": table.table_VD, "idf_V": table.idf_V}
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / TABLE_FILE)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(folder / TOKENIZER_FILE))
    told = {"digest": _digest(folder), "max_wordpieces": max_wordpieces, **facts}
    (folder / FACTS_FILE).write_text(json.dumps(told, indent=1))
    return StaticEncoder(folder)


def _facts(folder: Path) -> dict[str, object]:
    """What is told of a folder's encoder, once its bytes are those that it was told of."""
    missing = [n for n in (TABLE_FILE, TOKENIZER_FILE, FACTS_FILE) if not (folder / n).is_file()]
    if missing:
        raise EncoderError(
            f"{folder} is no static encoder: it lacks {missing}. Make one from the vectors of a "
            f"run: clearstory distil --out {folder}"
        )
    facts: dict[str, object] = json.loads((folder / FACTS_FILE).read_text())
    found = _digest(folder)
    if found != facts["digest"]:
        raise EncoderError(
            f"{folder} was changed after it was written: its digest is {found[:12]}…, {FACTS_FILE} "
            f"says {str(facts['digest'])[:12]}…. Make it again: clearstory distil --out {folder}"
        )
    return facts


def _digest(folder: Path) -> str:
    content = (folder / name for name in (TABLE_FILE, TOKENIZER_FILE))
    return hashlib.sha256(
        b"static\0" + b"\0".join(path.read_bytes() for path in content)
    ).hexdigest()


def _scaled(counts_NV: sparse.csr_array, idf_V: Floats) -> sparse.csr_array:
    """Rows of length one; square roots, since a piece said four times is not four times as much."""
    x_NV = counts_NV.copy()
    x_NV.data = np.sqrt(x_NV.data) * idf_V[x_NV.indices]
    squares_N = np.add.reduceat(np.append(x_NV.data, 0.0) ** 2, x_NV.indptr[:-1]) * (
        np.diff(x_NV.indptr) > 0
    )
    length_N = np.maximum(np.sqrt(squares_N), 1e-12)
    x_NV.data = (x_NV.data / np.repeat(length_N, np.diff(x_NV.indptr))).astype(np.float32)
    return x_NV


def _ridge_regression(
    x_NV: sparse.csr_array, target_ND: Floats, ridge: float, n_iterations: int
) -> Floats:
    """The w of least |x w − target|² + ridge · |w|², by conjugate gradients on each column."""
    transposed_VN = x_NV.T.tocsr()
    left_VD = transposed_VN @ target_ND
    table_VD, step_VD = np.zeros_like(left_VD), left_VD.copy()
    error_D = np.square(left_VD).sum(axis=0)
    for _ in range(n_iterations):
        moved_VD = transposed_VN @ (x_NV @ step_VD) + ridge * step_VD
        length_D = error_D / np.maximum((step_VD * moved_VD).sum(axis=0), 1e-30)
        table_VD += length_D * step_VD
        left_VD -= length_D * moved_VD
        less_D = np.square(left_VD).sum(axis=0)
        step_VD = left_VD + (less_D / np.maximum(error_D, 1e-30)) * step_VD
        error_D = less_D
    return np.asarray(table_VD, dtype=np.float32)
