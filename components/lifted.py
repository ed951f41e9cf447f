"""Lifted words as those who use them want them: log-odds by concept, or one table of token ids.

Shape suffixes used in this file:
    K known concept   W place for a word
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from components import contracts
from model.interleaving import Lifted

RAREST = 1e-4
"""Prevalences below this are drawn as if they were this."""


def log_odds(lifted: Path, n_concepts: int) -> list[dict[int, float]]:
    """Of each concept, by id: the log-odds of its words, by token id, best first."""
    found: list[dict[int, float]] = [{} for _ in range(n_concepts)]
    rows = contracts.read(lifted, contracts.LIFTED_WORDS).to_pylist()
    strangers = {row["concept_id"] for row in rows if row["concept_id"] >= n_concepts}
    if strangers:
        raise contracts.ContractError(
            f"{lifted} has words of concepts {sorted(strangers)[:5]}, but the checkpoint knows "
            f"0 … {n_concepts - 1}: they come from two libraries. Run `clearstory run` again."
        )
    for row in rows:
        found[row["concept_id"]][row["token_id"]] = row["log_odds"]
    return found


def table(lifted: Path, prevalences: Sequence[float]) -> Lifted:
    """What steering steps need: a concept's odds fall with the root of how common it is."""
    words = [list(of_concept) for of_concept in log_odds(lifted, len(prevalences))]
    longest = max(1, max(map(len, words), default=0))
    words_KW = torch.tensor([ids + [-1] * (longest - len(ids)) for ids in words])
    odds_K = torch.tensor(prevalences).clamp(min=RAREST).rsqrt()
    return Lifted(words_KW, torch.where(words_KW[:, 0] >= 0, odds_K, 0.0))
