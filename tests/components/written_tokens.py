"""Tokens, Concepts and Checkpoint artifacts of a made-up language, small enough for one test.

Each concept has words of its own; a chunk about it uses them half of the time.
"""

import json
from pathlib import Path

import numpy as np

from components import contracts
from components.library import freeze
from model import checkpoint as checkpoints
from model.config import NetworkConfig
from model.language_model import LanguageModel
from model.tokenizer import Tokenizer, train

CONCEPTS = {
    "weather": ("rain", "cloud", "storm", "wind"),
    "kitchen": ("bread", "oven", "salt", "knife"),
    "music": ("violin", "chord", "tempo", "drum"),
    "numbers": ("seven", "prime", "sum", "zero"),
    "plants": ("root", "leaf", "moss", "fern"),
}
COMMON = ("the", "a", "of", "and", "is", "in", "it", "was")
DOMAINS = ("letters", "notes")
BLOCK = 8


def write_tokens(folder: Path, n_documents: int = 24, seed: int = 0) -> Path:
    """Documents of four chunks; five in eight train, the rest are held out."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    documents = [_document(random) for _ in range(n_documents)]
    words = [text for chunks in documents for text, _ in chunks]
    tokenizer = train(words, 300, folder / "tokenizer.json")
    stream: list[int] = []
    rows: list[dict[str, object]] = []
    splits: dict[str, list[int]] = {}
    for split in ("train", "valid", "test"):
        first = len(stream)
        for number, chunks in enumerate(documents):
            if _split(number) == split:
                _add(stream, rows, tokenizer, number, split, chunks)
        _pad(stream, rows, tokenizer, split)
        splits[split] = [first, len(stream)]
    np.save(folder / "stream.npy", np.array(stream, dtype=np.uint16))
    facts = {"vocab_size": 300, "block": BLOCK, "splits": splits, "n_documents": n_documents}
    (folder / "tokens.json").write_text(json.dumps(facts))
    contracts.write(rows, folder, contracts.TOKENS)
    return folder


def write_concepts(folder: Path) -> Path:
    """The library of the five concepts."""
    folder.mkdir(parents=True)
    rows = [
        {
            "concept_id": number, "name": name, "description": f"words about {name}",
            "kind": "content", "parent": "made-up", "taxonomy": f"made-up / {name}",
            "prevalence": 0.3, "n_chunks": 20, "coherence": 0.9, "members": list(words),
        }
        for number, (name, words) in enumerate(CONCEPTS.items())
    ]  # fmt: skip
    freeze(rows, np.eye(len(CONCEPTS), dtype=np.float32), {}, folder)
    return folder


def write_checkpoint(
    folder: Path,
    tokens: Path,
    family: str = "cdlm_concept",
    n_known: int = len(CONCEPTS),
    max_length: int = 4 * BLOCK,
) -> Path:
    """An untrained network for these tokens, or for a smaller library than theirs."""
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(tokens / "tokenizer.json")
    network = NetworkConfig.model_validate(
        {
            "family": family, "width": 16, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1,
            "mlp_width": 24, "max_length": max_length, "block": BLOCK, "rank": 3,
        }
    )  # fmt: skip
    lm = LanguageModel(
        network.language_model(
            vocab_size=tokenizer.vocab_size, n_known=n_known, specials=tokenizer.specials
        )
    )
    checkpoints.save(lm, folder)
    concepts = [
        {
            "concept_id": number, "name": name, "description": f"words about {name}",
            "kind": "content", "prevalence": 0.3,
        }
        for number, name in enumerate(CONCEPTS)
    ]  # fmt: skip
    library = {"digest": "made-up", "concepts": concepts}
    (folder / "concepts.json").write_text(json.dumps(library))
    (folder / "tokenizer.json").write_bytes((tokens / "tokenizer.json").read_bytes())
    facts = {"steps": 3, "tokens": 96, "flops": 1e9, "seed": 0, "world": 1, "dtype": "float32"}
    (folder / "training.json").write_text(json.dumps(facts))
    contracts.seal(folder, contracts.CHECKPOINT)
    return folder


def _document(random: np.random.Generator) -> list[tuple[str, list[int]]]:
    chunks = []
    for _ in range(4):
        present = sorted(random.choice(len(CONCEPTS), size=2, replace=False).tolist())
        own = [word for concept in present for word in list(CONCEPTS.values())[concept]]
        words = [
            str(random.choice(own if random.random() < 0.5 else list(COMMON))) for _ in range(12)
        ]
        chunks.append((" ".join(words) + ". ", present))
    return chunks


def _split(number: int) -> str:
    return ("train", "valid", "train", "test", "train", "train", "valid", "train")[number % 8]


def _add(
    stream: list[int],
    rows: list[dict[str, object]],
    tokenizer: Tokenizer,
    number: int,
    split: str,
    chunks: list[tuple[str, list[int]]],
) -> None:
    specials = tokenizer.specials
    for place, (text, present) in enumerate(chunks):
        ids = [*tokenizer.encode(text), specials.end_of_chunk_id]
        ids = [specials.bos_id, *ids] if place == 0 else ids
        ids = [*ids, specials.eos_id] if place == len(chunks) - 1 else ids
        rows.append(
            {
                "span_id": len(rows), "chunk_id": len(rows), "doc_id": f"d{number:02d}",
                "split": split, "domain": DOMAINS[number % 3 % 2], "source": "made-up",
                "token_start": len(stream), "token_end": len(stream) + len(ids),
                "n_bytes": len(text.encode()), "labelled": True, "concept_ids": present,
            }
        )  # fmt: skip
        stream += ids


def _pad(
    stream: list[int], rows: list[dict[str, object]], tokenizer: Tokenizer, split: str
) -> None:
    missing = -len(stream) % BLOCK
    if missing:
        rows.append(
            {
                "span_id": len(rows), "chunk_id": -1, "doc_id": "", "split": split, "domain": "",
                "source": "", "token_start": len(stream), "token_end": len(stream) + missing,
                "n_bytes": 0, "labelled": False, "concept_ids": [],
            }
        )  # fmt: skip
        stream += [tokenizer.specials.pad_id] * missing
