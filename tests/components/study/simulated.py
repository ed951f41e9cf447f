"""A library, its lifted words and tokens for a study, and raters whose effects are known.

rating  =  3 + concept + rater + effect of the name + error, rounded and cut to 1 … 5
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components import contracts
from components.library import freeze
from components.study.ratings import Pairs, Ratings
from model.tokenizer import Tokenizer, train

BRANCHES = ("Earth", "Home", "Life")
SPELLING = "abcdefghijklmnopqrstuvwxyz"
N_CONCEPTS, N_WORDS = 9, 4
VOCAB_SIZE = 324
"""All merges there are in the words below, so that each word is one token."""


@dataclass(frozen=True)
class Written:
    """Folders of what a study is drawn from."""

    concepts: Path
    lifted: Path
    tokens: Path


def write_library(folder: Path) -> Written:
    """Concepts in three branches; the last has one word too few."""
    words = [
        [f"{SPELLING[k]}{SPELLING[w] * 4}" for w in range(N_WORDS - (k == N_CONCEPTS - 1))]
        for k in range(N_CONCEPTS)
    ]
    tokens = _write_tokens(folder / "tokens", words)
    concepts = folder / "concepts"
    concepts.mkdir()
    rows = [
        {
            "concept_id": k, "name": f"topic {SPELLING[k]}", "description": "d",
            "kind": "content", "parent": BRANCHES[k % 3],
            "taxonomy": f"{BRANCHES[k % 3]} / topic {SPELLING[k]}", "prevalence": 0.1,
            "n_chunks": 9, "coherence": 0.9, "members": of_concept,
        }
        for k, of_concept in enumerate(words)
    ]  # fmt: skip
    freeze(rows, np.eye(N_CONCEPTS, dtype=np.float32), {}, concepts)
    return Written(concepts, _write_lifted(folder / "lifted", tokens, words), tokens)


def rated(
    n_concepts: int, n_raters: int, *, effects: dict[str, float], seed: int,
    concept_sd: float = 0.5, rater_sd: float = 0.3, name_sd: float = 0.0, error_sd: float = 0.6,
    on_the_scale: bool = True,
) -> dict[str, Ratings]:  # fmt: skip
    """Every rater's ratings of every concept, by kind."""
    random = np.random.default_rng(seed)
    concept_N = np.repeat(np.arange(n_concepts), n_raters)
    rater_N = np.tile(np.arange(n_raters), n_concepts)
    base_N = 3 + random.normal(0, concept_sd, n_concepts)[concept_N]
    base_N = base_N + random.normal(0, rater_sd, n_raters)[rater_N]
    found = {}
    for kind, effect in effects.items():
        name_C = random.normal(0, name_sd, n_concepts)
        value_N = base_N + effect + name_C[concept_N] + random.normal(0, error_sd, len(base_N))
        if on_the_scale:
            value_N = value_N.round().clip(1, 5)
        found[kind] = Ratings(rater_N, concept_N, value_N, tuple(range(n_concepts)))
    return found


def pairs_of(ratings: dict[str, Ratings]) -> Pairs:
    """Pipeline and human ratings side by side."""
    return Pairs(ratings["pipeline"], ratings["human"])


def answer(page_rows: list[dict[str, object]], study_id: str, phase: int) -> dict[str, object]:
    """What a rater's page saves: one answer an item, names in phase 1."""
    answers = {
        str(row["item_id"]): {
            "item_id": row["item_id"],
            "rating": 1 + int(str(row["item_id"]), 16) % 5,
            "name": f"My idea {row['concept_id']}" if phase == 1 else "",
        }
        for row in page_rows
    }
    rater_id = page_rows[0]["rater_id"]
    return {"study_id": study_id, "rater_id": rater_id, "phase": phase,
            "answers": list(answers.values())}  # fmt: skip


def answer_all(study: Path, folder: Path) -> Path:
    """A file from every rater of a study."""
    folder.mkdir()
    facts = contracts.json_file(study, "study.json")
    rows = contracts.read(study, contracts.STUDY).to_pylist()
    for rater_id in sorted({row["rater_id"] for row in rows}):
        own = [row for row in rows if row["rater_id"] == rater_id]
        text = json.dumps(answer(own, str(facts["study_id"]), int(str(facts["phase"]))))
        (folder / f"{rater_id}.json").write_text(text)
    return folder


def _write_tokens(folder: Path, words: list[list[str]]) -> Path:
    """One chunk a concept: its words between spaces, and the piece that all of them hide."""
    folder.mkdir(parents=True)
    texts = [" " + " ".join(of_concept) + " xxaaaaxx" for of_concept in words]
    tokenizer = train(
        [text for text in texts for _ in range(3)], VOCAB_SIZE, folder / "tokenizer.json"
    )
    stream: list[int] = []
    rows = []
    for number, text in enumerate(texts):
        start = len(stream)
        stream += tokenizer.encode(text)
        rows.append({
            "span_id": number, "chunk_id": number, "doc_id": f"d{number}", "split": "train",
            "domain": "d", "source": "s", "token_start": start, "token_end": len(stream),
            "n_bytes": len(text), "labelled": True, "concept_ids": [number],
        })  # fmt: skip
    np.save(folder / "stream.npy", np.array(stream, dtype=np.uint16))
    end = len(stream)
    facts = {
        "vocab_size": VOCAB_SIZE, "block": 1,
        "splits": {"train": [0, end], "valid": [end, end], "test": [end, end]},
    }  # fmt: skip
    (folder / "tokens.json").write_text(json.dumps(facts))
    contracts.write(rows, folder, contracts.TOKENS)
    return folder


def _write_lifted(folder: Path, tokens: Path, words: list[list[str]]) -> Path:
    tokenizer = Tokenizer(tokens / "tokenizer.json")
    folder.mkdir()
    rows = []
    for k, of_concept in enumerate(words):
        token_ids = [tokenizer.encode(f" {word}")[-1] for word in of_concept]
        for rank, token_id in enumerate(token_ids):
            rows.append({"concept_id": k, "token_id": token_id, "log_odds": 5.0 - rank,
                         "support": 9})  # fmt: skip
    contracts.write(rows, folder, contracts.LIFTED_WORDS)
    return folder
