"""The head of the trained annotator: one direction a concept, over a frozen encoder (paper §4).

    linear        a direction of its own for each concept, started at its card
    bi_encoder    the card through a projection that all concepts share, plus an offset of its own:
                  what is learned of frequent concepts reaches the rare ones

Either is a dot product once it is learned. A step sees some concepts, tagged chunks that carry
them, and a draw of unlabelled chunks: a chunk is scored on its own concepts, on those of the others
in the batch, and on sampled ones. Where all of them fit, a step sees all of them.

Shape suffixes: P tagged chunks   U unlabelled chunks   K concepts   C concepts of a step
    B tagged chunks of a step   D vector width
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn.functional import normalize

from components.annotators import Floats, Integers, Linear
from components.atlas import risk
from components.atlas.learning_config import HeadConfig

_SCALE = 8.0
"""Of cosines in logits, to begin with."""


@dataclass(frozen=True)
class Examples:
    """Tagged chunks with their concepts, and chunks of the corpus that stand for all of it."""

    tagged_PD: Floats
    labels_PK: csr_array
    unlabelled_UD: Floats


@dataclass(frozen=True)
class Step:
    """What one step looks at; `labels_BC` says which of its chunks carry which of its concepts."""

    concepts_C: Integers
    tagged_B: Integers
    labels_BC: Floats
    unlabelled_B: Integers


def fit(examples: Examples, cards_KD: Floats, prior_K: Floats, config: HeadConfig) -> Linear:
    """The head that minimises the positive-unlabelled risk, near the cards it started from."""
    tagged_PD = torch.from_numpy(examples.tagged_PD)
    unlabelled_UD = torch.from_numpy(examples.unlabelled_UD)
    centre_D = unlabelled_UD.mean(0)
    prior = torch.from_numpy(prior_K)
    head = Head(torch.from_numpy(cards_KD), prior, is_shared=config.head == "bi_encoder")
    optimiser = torch.optim.AdamW(head.parameters(), lr=config.lr, weight_decay=0.0)
    rate = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, config.n_steps)
    anchor = config.anchor / len(tagged_PD)
    for step in steps(examples.labels_PK, len(unlabelled_UD), config):
        concepts = torch.from_numpy(step.concepts_C)
        weight_CD, bias_C = head(concepts)
        batch_BD = tagged_PD[torch.from_numpy(step.tagged_B)] - centre_D
        draw_BD = unlabelled_UD[torch.from_numpy(step.unlabelled_B)] - centre_D
        loss = risk.non_negative(
            batch_BD @ weight_CD.T + bias_C, torch.from_numpy(step.labels_BC),
            draw_BD @ weight_CD.T + bias_C, prior[concepts],
        )  # fmt: skip
        loss = loss + anchor * head.strayed(concepts)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        rate.step()
    with torch.no_grad():
        weight_KD, bias_K = head(torch.arange(len(prior)))
        return Linear(weight_KD.numpy(), (bias_K - weight_KD @ centre_D).numpy())


def steps(labels_PK: csr_array, n_unlabelled: int, config: HeadConfig) -> Iterator[Step]:
    """Every step's concepts and chunks, from the seed and the step's number alone."""
    n_tagged, n_concepts = labels_PK.shape
    is_whole = n_concepts <= config.n_sampled and n_tagged <= config.n_tagged
    whole_PK = labels_PK.toarray() if is_whole else np.zeros((0, 0), dtype=np.float32)
    carriers_KP = labels_PK.T.tocsr()
    for number in range(config.n_steps):
        draw = np.random.default_rng((config.seed, number))
        if n_unlabelled <= config.n_unlabelled:
            unlabelled_B = np.arange(n_unlabelled)
        else:
            unlabelled_B = draw.integers(0, n_unlabelled, config.n_unlabelled)
        if is_whole:
            concepts_C, tagged_B, labels_BC = np.arange(n_concepts), np.arange(n_tagged), whole_PK
        else:
            concepts_C = _drawn(n_concepts, config.n_sampled, draw)
            tagged_B = _carriers(carriers_KP[concepts_C], config.n_tagged, draw)
            concepts_C = np.union1d(concepts_C, _in_batch(labels_PK[tagged_B], config, draw))
            labels_BC = labels_PK[tagged_B][:, concepts_C].toarray()
        yield Step(concepts_C, tagged_B, np.asarray(labels_BC, np.float32), unlabelled_B)


class Head(nn.Module):
    """Weights and biases of concepts, as functions of their cards."""

    def __init__(self, cards_KD: Tensor, prior_K: Tensor, *, is_shared: bool) -> None:
        super().__init__()
        self.card_KD = normalize(cards_KD, dim=1)
        width = cards_KD.shape[1]
        self.offset_KD = nn.Parameter(torch.zeros_like(cards_KD))
        self.bias_K = nn.Parameter(risk.logits_of(prior_K))
        self.log_scale_K = nn.Parameter(torch.zeros_like(prior_K))
        self.projection_DD = nn.Parameter(torch.zeros(width, width), requires_grad=is_shared)

    def forward(self, concepts_C: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (C, D) and biases (C) of these concepts."""
        card_CD = self.card_KD[concepts_C]
        direction_CD = card_CD + card_CD @ self.projection_DD + self.offset_KD[concepts_C]
        scale_C1 = _SCALE * self.log_scale_K[concepts_C, None].exp()
        return direction_CD * scale_C1, self.bias_K[concepts_C]

    def strayed(self, concepts_C: Tensor) -> Tensor:
        """Squared distance of directions from their cards, the mean over concepts."""
        return self.offset_KD[concepts_C].square().sum(1).mean()


def _drawn(n: int, wanted: int, draw: np.random.Generator) -> Integers:
    """Without replacement, in ascending order."""
    return np.sort(draw.choice(n, size=min(n, wanted), replace=False)).astype(np.int64)


def _carriers(carriers_CP: csr_array, wanted: int, draw: np.random.Generator) -> Integers:
    """Tagged chunks of the drawn concepts: as many of each as an equal share allows."""
    each = max(1, wanted // carriers_CP.shape[0])
    chosen: list[NDArray[np.int64]] = []
    for first, end in zip(carriers_CP.indptr[:-1], carriers_CP.indptr[1:], strict=True):
        rows = carriers_CP.indices[first:end].astype(np.int64)
        chosen.append(rows if len(rows) <= each else draw.choice(rows, each, replace=False))
    return np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def _in_batch(labels_BK: csr_array, config: HeadConfig, draw: np.random.Generator) -> Integers:
    """Concepts that chunks of the batch carry: all, or as many of them as were drawn beside."""
    found = np.unique(labels_BK.indices).astype(np.int64)
    if len(found) > config.n_sampled:
        found = np.sort(draw.choice(found, config.n_sampled, replace=False))
    return found
