"""The encoder learns too: the risk of the head, through every weight (paper §4; method §1.4).

    text  ->  encoder  ->  unit vector  ->  head over concepts  ->  positive-unlabelled risk

What is kept is the encoder, saved as sentence-transformers saves it; a head is then fitted to its
vectors as to those of any other. In a batch a concept has few tagged chunks or none, so its sums
are divided by how many it has on average: over steps the risk is that of the whole sample.

Shape suffixes: P tagged chunks   K concepts   B tagged chunks of a step, and unlabelled ones
    C concepts of a step
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn.functional import normalize

from components import embedding
from components.annotators import Floats
from components.atlas import risk
from components.atlas.heads import Head
from components.atlas.learning_config import FineTuneConfig


def fine_tune(
    tagged: Sequence[str], labels_PK: csr_array, unlabelled: Sequence[str], cards_KD: Floats,
    prior_K: Floats, config: FineTuneConfig, folder: Path,
) -> None:  # fmt: skip
    """Train `config.base` on these texts and save it to `folder`. `cards_KD` are its vectors."""
    encoder = embedding.trainable(config.base)
    prior = torch.from_numpy(prior_K)
    head = Head(torch.from_numpy(cards_KD), prior, is_shared=False)
    optimiser = torch.optim.AdamW(
        [
            {"params": list(encoder.parameters()), "lr": config.lr},
            {"params": list(head.parameters()), "lr": config.head_lr},
        ],
        weight_decay=0.0,
    )
    share_K = torch.from_numpy(_shares(labels_PK))
    torch.manual_seed(config.seed)
    encoder.train()
    for step in range(config.n_steps):
        draw = np.random.default_rng((config.seed, step))
        rows = draw.integers(0, len(tagged), config.batch_chunks)
        others = draw.integers(0, len(unlabelled), config.batch_chunks)
        concepts = torch.from_numpy(_concepts(labels_PK[rows], config, draw))
        labels_BC = torch.from_numpy(labels_PK[rows].toarray().astype(np.float32))[:, concepts]
        texts = [*(tagged[row] for row in rows), *(unlabelled[row] for row in others)]
        weight_CD, bias_C = head(concepts)
        logits = _vectors(encoder, texts) @ weight_CD.T + bias_C
        loss = risk.non_negative(
            logits[: len(rows)], labels_BC, logits[len(rows) :], prior[concepts],
            n_K=len(rows) * share_K[concepts],
        )  # fmt: skip
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    encoder.eval()
    encoder.save(str(folder), create_model_card=False)


def _vectors(encoder: Any, texts: list[str]) -> Tensor:
    """Unit vectors with their gradients."""
    features = encoder.tokenize(texts)
    return normalize(encoder(features)["sentence_embedding"], dim=1)


def _shares(labels_PK: csr_array) -> Floats:
    """Of the tagged chunks, how many carry each concept."""
    counts_K = np.bincount(labels_PK.indices, minlength=labels_PK.shape[1])
    return (counts_K / labels_PK.shape[0]).astype(np.float32)


def _concepts(
    labels_BK: csr_array, config: FineTuneConfig, draw: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Those that the batch carries, and sampled ones."""
    n_concepts = labels_BK.shape[1]
    drawn = draw.choice(n_concepts, size=min(n_concepts, config.n_sampled), replace=False)
    return np.union1d(drawn, labels_BK.indices).astype(np.int64)
