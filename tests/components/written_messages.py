"""Messages about the concepts of the made-up language, and an annotator that knows them."""

from pathlib import Path

import numpy as np

from components import annotators, contracts, embedding, hashing
from components.annotators import Annotator, Calibration, Linear
from tests.components.written_tokens import CONCEPTS

Said = list[tuple[str, str]]


def conversations(n: int = 30) -> list[Said]:
    """Each asks for a concept and is told its words; every fifth asks again for another."""
    found = []
    for number in range(n):
        asked = [number % 5, (number + 2) % 5] if number % 5 == 4 else [number % 5]
        found.append([turn for concept in asked for turn in _turns(concept, number)])
    return found


def write_messages(folder: Path, said: list[Said]) -> Path:
    folder.mkdir(parents=True)
    rows = (
        {
            "conversation_id": f"c{number:02d}", "source": "made-up", "licence": "CC0-1.0",
            "messages": [{"role": role, "content": content} for role, content in turns],
        }
        for number, turns in enumerate(said)
    )  # fmt: skip
    contracts.write(rows, folder, contracts.MESSAGES)
    return folder


def write_annotator(folder: Path, library: str = "made-up") -> Path:
    """Cosine with the concept's words, by the encoder that needs no download."""
    folder.mkdir(parents=True)
    embedder = embedding.load(hashing.NAME)
    weight_KD = embedder.embed([" ".join(words) for words in CONCEPTS.values()])
    nothing_K = np.zeros(len(CONCEPTS), dtype=np.float32)
    calibration = Calibration(nothing_K + 0.4, nothing_K + 0.1)
    annotators.save(
        Annotator(Linear(weight_KD, nothing_K), calibration, max_labels=2), folder, "cards",
        {
            "encoder": embedder.name, "encoder_digest": embedder.digest, "library_digest": library,
        },
    )  # fmt: skip
    return folder


def _turns(concept: int, number: int) -> Said:
    words = list(CONCEPTS.values())[concept]
    shift = number % 4
    return [
        ("user", f"{words[0]}?"), ("assistant", " ".join([*words[shift:], *words[:shift]])),
    ]  # fmt: skip
