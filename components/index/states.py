"""The network's mean state of a chunk, read in its place in the stream (paper §6.1.3).

Twice: over its tokens as they are, and over masked ones, which is what generation commits from.
Chunks that a window cuts are left out.

Shape suffixes: B batch   T position   C chunk of a batch   N chunk   D width
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.index.config import BuildConfig
from components.order import Integers, permuted
from components.tokens import TokenStream
from model.diffusion import Batch, corrupt, fixed
from model.engine import dtype
from model.language_model import LanguageModel
from model.transducer import mean_states


@dataclass(frozen=True)
class ChunkStates:
    """Mean states of chunks, one row a chunk."""

    chunk_id_N: Integers
    doc_id_N: NDArray[np.str_]
    """Chunks of one document are not independent."""

    clean_ND: Tensor
    masked_ND: Tensor
    """Of a network that is asked for masked tokens; the AR families read clean text alone."""

    def __len__(self) -> int:
        return len(self.chunk_id_N)

    def rows(self, wanted: slice) -> "ChunkStates":
        return ChunkStates(
            self.chunk_id_N[wanted], self.doc_id_N[wanted], self.clean_ND[wanted],
            self.masked_ND[wanted],
        )  # fmt: skip


def chunk_states(
    lm: LanguageModel, stream: TokenStream, split: str, n: int, config: BuildConfig
) -> ChunkStates:
    """States of `n` chunks of a split, or of all if there are fewer, in a shuffled order."""
    found: list[ChunkStates] = []
    for indices in _shuffled(stream.n_windows(split, config.length), config):
        if sum(map(len, found)) >= n:
            break
        found.append(_states(lm, stream, split, indices, config))
    if not any(map(len, found)):
        raise ValueError(
            f"no chunk of the {split} split fits whole into a window of {config.length} tokens; "
            f"raise length, or cut shorter chunks"
        )
    return ChunkStates(
        np.concatenate([states.chunk_id_N for states in found]),
        np.concatenate([states.doc_id_N for states in found]),
        torch.cat([states.clean_ND for states in found]),
        torch.cat([states.masked_ND for states in found]),
    ).rows(slice(n))


def _shuffled(n_windows: int, config: BuildConfig) -> Iterator[Integers]:
    windows = permuted(np.arange(n_windows), n_windows, config.seed, epoch=0)
    for start in range(0, n_windows, config.batch_sequences):
        yield windows[start : start + config.batch_sequences]


@torch.no_grad()
def _states(
    lm: LanguageModel, stream: TokenStream, split: str, indices: Integers, config: BuildConfig
) -> ChunkStates:
    batch = stream.batch(split, config.length, indices)
    origins = stream.origins(split, config.length, indices)
    n_chunks = len(origins.span_C)
    clean_CD = mean_states(_hidden(lm, batch.ids_BT, config), batch.chunk_BT, n_chunks)
    masked_CD, asked_C = clean_CD, torch.ones(n_chunks, dtype=torch.bool)
    if lm.config.backbone.attention != "causal":
        noise = corrupt(batch, fixed(config.mask_rate), config.seed, 0, lm.config)
        asked_BT = torch.where(noise.masked_BT, batch.chunk_BT, -1)
        masked_CD = mean_states(_hidden(lm, noise.noisy_BT, config), asked_BT, n_chunks)
        asked_C = torch.isin(torch.arange(n_chunks), asked_BT)
    kept_C = torch.from_numpy(_whole(stream, split, batch, indices, origins.span_C, config.length))
    kept_C &= asked_C
    span_N = origins.span_C[kept_C.numpy()]
    return ChunkStates(
        stream.spans.chunk_id[span_N],
        np.array([stream.spans.doc_id[span] for span in span_N], dtype=np.str_),
        clean_CD[kept_C],
        masked_CD[kept_C],
    )


def _hidden(lm: LanguageModel, ids_BT: Tensor, config: BuildConfig) -> Tensor:
    low_precision = dtype(config.dtype) == torch.bfloat16
    with torch.autocast(ids_BT.device.type, torch.bfloat16, enabled=low_precision):
        return lm.hidden(ids_BT).float()


def _whole(
    stream: TokenStream, split: str, batch: Batch, indices: Integers, span_C: Integers, length: int
) -> NDArray[np.bool_]:
    """Chunks of which the window holds every token."""
    chunk_BT = batch.chunk_BT.numpy()
    local, first = np.unique(chunk_BT, return_index=True)
    window_C = first[local >= 0] // chunk_BT.shape[1]
    start_C = stream.bounds[split][0] + indices[window_C] * length
    starts_C, ends_C = stream.spans.token_start[span_C], stream.spans.token_end[span_C]
    return np.asarray((starts_C >= start_C) & (ends_C <= start_C + length))
