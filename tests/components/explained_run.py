"""Every artifact that explaining and steering read, of a made-up language with six concepts.

A chunk about a concept uses its words. The network is random and loud, but the direction of each
concept points at its words, as training would have it: steering then has something to move.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from components import annotators, contracts, embedding, hashing
from components.annotators import Annotator, Calibration, Linear
from components.hashing import HashingEmbedder
from components.packing.config import LiftConfig, PackConfig
from components.packing.lift import lift
from components.packing.stage import pack
from model import checkpoint as checkpoints
from model.config import NetworkConfig
from model.language_model import LanguageModel
from model.tokenizer import Tokenizer
from tests.components.written_corpus import Corpus, Text, write_corpus

WORDS = (
    ("rain", "cloud", "storm", "wind"),
    ("bread", "oven", "salt", "knife"),
    ("violin", "chord", "tempo", "drum"),
    ("seven", "prime", "zero", "minus"),
    ("root", "leaf", "moss", "fern"),
    ("wheel", "engine", "brake", "petrol"),
)
COMMON = ("the", "there", "and", "was", "some", "more", "then", "with")
DOMAINS = ("letters", "notes")
BLOCK = 8


@dataclass(frozen=True)
class Run:
    """Folders of the artifacts."""

    corpus: Corpus
    tokens: Path
    lifted: Path
    vectors: Path
    checkpoint: Path
    annotator: Path


def write_run(folder: Path) -> Run:
    """Documents of three chunks: 24 to train on, 6 to validate, 10 held out."""
    random = np.random.default_rng(0)
    splits = ["train"] * 24 + ["valid"] * 6 + ["test"] * 10
    texts = [
        Text(f"d{number:02d}", split, DOMAINS[number % 2], [_chunk(random) for _ in range(3)])
        for number, split in enumerate(splits)
    ]
    corpus = write_corpus(folder, texts, len(WORDS))
    for name in ("tokens", "lifted", "vectors"):
        (folder / name).mkdir()
    pack(*vars(corpus).values(), folder / "tokens", PackConfig(vocab_size=310, block=BLOCK))
    how = LiftConfig(min_support=3, min_letters=2)
    lift(folder / "tokens", corpus.concepts, folder / "lifted", how)
    _write_vectors(folder / "vectors", [chunk for text in texts for chunk, _ in text.chunks])
    checkpoint = write_checkpoint(folder / "checkpoint", folder / "tokens", folder / "lifted")
    annotator = write_annotator(folder / "annotator")
    return Run(
        corpus, folder / "tokens", folder / "lifted", folder / "vectors", checkpoint, annotator
    )


def write_annotator(folder: Path, library: str = "made-up") -> Path:
    """Cosine with a concept's words, by the encoder that needs no download."""
    folder.mkdir()
    encoder = embedding.load(hashing.NAME)
    weight_KD = encoder.embed([" ".join(words) for words in WORDS])
    nothing_K = np.zeros(len(WORDS), dtype=np.float32)
    calibration = Calibration(nothing_K + 0.4, nothing_K + 0.1)
    annotators.save(
        Annotator(Linear(weight_KD, nothing_K), calibration, max_labels=2), folder, "cards",
        {"encoder": encoder.name, "encoder_digest": encoder.digest, "library_digest": library},
    )  # fmt: skip
    return folder


def write_checkpoint(folder: Path, tokens: Path, lifted: Path, seed: int = 0) -> Path:
    """A network of this seed, whose concepts point at their lifted words."""
    folder.mkdir()
    tokenizer = Tokenizer(tokens / "tokenizer.json")
    network = NetworkConfig(
        width=24, n_layers=2, n_heads=2, n_kv_heads=1, mlp_width=32, max_length=64, block=BLOCK,
        rank=3, top_k=3, top_k_unknown=4,
    )  # fmt: skip
    config = network.language_model(
        vocab_size=tokenizer.vocab_size, n_known=len(WORDS), specials=tokenizer.specials
    )
    lm = LanguageModel(config, seed)
    with torch.no_grad():
        for parameter in lm.parameters():
            if parameter.ndim == 2:
                parameter.mul_(15.0)
        words = contracts.read(lifted, contracts.LIFTED_WORDS).to_pylist()
        lm.embedding.weight[[row["token_id"] for row in words]] *= 2.0  # they are often written
        lm.concepts.known.embedding_KD.zero_()
        for row in words:
            word_D = lm.embedding.weight[row["token_id"]]
            lm.concepts.known.embedding_KD[row["concept_id"]] += 0.3 * word_D
    checkpoints.save(lm, folder)
    concepts = [
        {
            "concept_id": number, "name": words[0], "description": f"about {words[0]}",
            "kind": "content", "prevalence": 0.1 + 0.05 * number,
        }
        for number, words in enumerate(WORDS)
    ]  # fmt: skip
    (folder / "concepts.json").write_text(json.dumps({"digest": "made-up", "concepts": concepts}))
    (folder / "tokenizer.json").write_bytes((tokens / "tokenizer.json").read_bytes())
    (folder / "training.json").write_text("{}")
    contracts.seal(folder, contracts.CHECKPOINT)
    return folder


def _chunk(random: np.random.Generator) -> tuple[str, dict[int, float]]:
    concept = int(random.integers(len(WORDS)))
    words = [
        str(random.choice(WORDS[concept] if random.random() < 0.4 else COMMON)) for _ in range(9)
    ]
    return " ".join(words) + ".\n", {concept: 0.9}


def _write_vectors(folder: Path, chunks: list[str]) -> None:
    """By hashed words, so that texts of the same words are near each other."""
    encoder = HashingEmbedder()
    np.save(folder / "vectors.npy", encoder.embed(chunks).astype(np.float16))
    facts = {
        "name": encoder.name, "digest": encoder.digest, "dim": encoder.width,
        "max_wordpieces": encoder.max_wordpieces,
    }  # fmt: skip
    (folder / "encoder.json").write_text(json.dumps(facts))
    contracts.seal(folder, contracts.VECTORS, rows=len(chunks))
