"""Which state of a chunk finds it: of which layer, clean, masked or committed; and shared tokens.

    python -m benchmarks.transducer STAGES INDEX

STAGES is the folder of a run's finished stages, INDEX an index of its mid-trained checkpoint.

    index's own    its transducer, on chunks it was held back from: states over tokens as they are,
                   over masked ones, and as committed: one token a step in order of certainty, the
                   right token each time, earlier blocks finished
    by layer       transducers fitted alike, on clean states after each layer; 0 is the embedding,
                   which knows the chunk's words and nothing of their order

Shape suffixes: B batch   T position   D width   N chunk   E vector's width   K row found
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from components import nearest
from components.index import measuring
from components.index.config import BuildConfig
from components.index.rows import IndexedChunks, collapsed, vectors_of
from components.index.states import ChunkStates, StateReader
from components.index_facts import Recall
from components.nearest import Floats
from components.order import Integers
from components.retrieval import Retriever, open_index
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model import transducer
from model.language_model import LanguageModel
from model.transducer import Transducer, mean_states
from model.transformer import NO_PAST

CONFIG = BuildConfig(length=256, n_held_back=200, n_fitted=5_000)
N_COMMITTED_WINDOWS, N_LEARNED_WINDOWS = 64, 1_800


@dataclass(frozen=True)
class Study:
    """A run's artifacts, opened."""

    lm: LanguageModel
    stream: TokenStream
    vector_NE: Floats
    indexed: IndexedChunks
    retriever: Retriever

    @property
    def reader(self) -> StateReader:
        return StateReader(self.lm, self.stream, CONFIG)

    def recall(
        self,
        found_by: Transducer,
        state_ND: Tensor,
        chunk_id_N: Integers,
        doc_id_N: np.ndarray,  # type: ignore[type-arg]
    ) -> Recall:
        with torch.no_grad():
            query_NE = found_by(state_ND).numpy()
        own_N = np.array([self.indexed.row_of[chunk] for chunk in chunk_id_N.tolist()])
        found_NK = self.retriever.index.search(query_NE, 100).rows_QK
        return measuring.recall_of_own(found_NK, own_N, doc_id_N, self.retriever.index.n, CONFIG)


def lines(study: Study) -> Iterator[str]:
    """What is measured, a line each."""
    windows = study.reader.windows("train")
    half = windows[: len(windows) // 2]
    held_back, n_read = study.reader.whole_chunks("train", half, CONFIG.n_held_back)
    own = study.retriever.transducer
    for name, state_ND in (("clean", held_back.clean_ND), ("masked", held_back.masked_ND)):
        yield _line(name, study.recall(own, state_ND, held_back.chunk_id_N, held_back.doc_id_N))
    committed, rows_N = _committed(study, half[:N_COMMITTED_WINDOWS], held_back)
    yield _line(
        "committed",
        study.recall(own, committed, held_back.chunk_id_N[rows_N], held_back.doc_id_N[rows_N]),
    )
    asked = _by_layer(study, half[:n_read], held_back.chunk_id_N)
    learned = _by_layer(study, windows[n_read : n_read + N_LEARNED_WINDOWS], None)
    how = transducer.Fit(
        CONFIG.hidden_width, CONFIG.n_steps, CONFIG.batch_pairs, CONFIG.lr, CONFIG.contrast, 0
    )
    target_NE = torch.from_numpy(nearest.unit(study.vector_NE[learned.chunk_id_N]))
    order = {chunk: at for at, chunk in enumerate(held_back.chunk_id_N.tolist())}
    doc_id_N = held_back.doc_id_N[[order[chunk] for chunk in asked.chunk_id_N.tolist()]]
    for layer, state_ND in enumerate(learned.state_LND):
        fitted = transducer.fit(state_ND, target_NE, how)
        found = study.recall(fitted, asked.state_LND[layer], asked.chunk_id_N, doc_id_N)
        yield _line(f"layer {layer}, {len(state_ND)} pairs", found)


@dataclass(frozen=True)
class _Layers:
    chunk_id_N: Integers
    state_LND: list[Tensor]


@torch.no_grad()
def _by_layer(study: Study, windows: Integers, wanted: Integers | None) -> _Layers:
    """Clean states of whole chunks, after each layer."""
    chunk_ids: list[Integers] = []
    states: list[list[Tensor]] = []
    for start in range(0, len(windows), CONFIG.batch_sequences):
        indices = windows[start : start + CONFIG.batch_sequences]
        batch = study.stream.batch("train", CONFIG.length, indices)
        span_C = study.stream.origins("train", CONFIG.length, indices).span_C
        kept_C = study.reader.share("train", batch, indices, span_C) >= 1.0
        chunk_id_C = study.stream.spans.chunk_id[span_C]
        if wanted is not None:
            kept_C &= np.isin(chunk_id_C, wanted)
        kept = np.flatnonzero(kept_C)
        seen = _after_each_layer(study.lm, batch.ids_BT)
        states.append([mean_states(x, batch.chunk_BT, len(span_C))[kept] for x in seen])
        chunk_ids.append(chunk_id_C[kept])
    return _Layers(np.concatenate(chunk_ids), [torch.cat(one) for one in zip(*states, strict=True)])


def _after_each_layer(lm: LanguageModel, ids_BT: Tensor) -> list[Tensor]:
    seen = [lm.embedding(ids_BT)]
    hooks = [
        layer.register_forward_hook(lambda _, __, out: seen.append(out[0]))
        for layer in lm.backbone.layers
    ]
    lm.hidden(ids_BT)
    for hook in hooks:
        hook.remove()
    return seen


@torch.no_grad()
def _committed(study: Study, windows: Integers, held_back: ChunkStates) -> tuple[Tensor, Integers]:
    """States from which the true tokens are committed, and the rows of the chunks held back."""
    found, rows = [], []
    row_of = {chunk: row for row, chunk in enumerate(held_back.chunk_id_N.tolist())}
    for start in range(0, len(windows), CONFIG.batch_sequences):
        indices = windows[start : start + CONFIG.batch_sequences]
        batch = study.stream.batch("train", CONFIG.length, indices)
        span_C = study.stream.origins("train", CONFIG.length, indices).span_C
        state_BTD = _unmasked(study.lm, batch.ids_BT, batch.hideable(study.lm.config))
        mean_CD = mean_states(state_BTD, batch.chunk_BT, len(span_C))
        chunk_ids = study.stream.spans.chunk_id[span_C].tolist()
        kept = [at for at, chunk in enumerate(chunk_ids) if chunk in row_of]
        found.append(mean_CD[kept])
        rows += [row_of[chunk_ids[at]] for at in kept]
    return torch.cat(found), np.array(rows)


def _unmasked(lm: LanguageModel, ids_BT: Tensor, hideable_BT: Tensor) -> Tensor:
    """The state (B, T, D) of each token in the step that commits it."""
    block, past = lm.config.backbone.block, NO_PAST
    state_BTD = torch.zeros(*ids_BT.shape, lm.config.backbone.width)
    rows_B = torch.arange(len(ids_BT))
    for start in range(0, ids_BT.shape[1], block):
        true_BT = ids_BT[:, start : start + block]
        open_BT = hideable_BT[:, start : start + block].clone()
        while open_BT.any():
            hidden_BTD = lm.hidden(true_BT.masked_fill(open_BT, lm.config.mask_id), past)
            logits_BTV = lm.logits(hidden_BTD)
            certain_BT = logits_BTV.max(-1).values - logits_BTV.logsumexp(-1)
            at_B = certain_BT.masked_fill(~open_BT, float("-inf")).argmax(1)
            writes_B = open_BT.any(1)
            rows, at = rows_B[writes_B], at_B[writes_B]
            state_BTD[rows, start + at] = lm.composed(hidden_BTD[rows, at])
            open_BT[rows, at] = False
        past = lm.extend(past, true_BT)
    return state_BTD


def _line(name: str, found: Recall) -> str:
    told = "  ".join(
        f"@{k} {at.value:.3f} [{at.low:.3f}, {at.high:.3f}]"
        for k, at in ((1, found.at_1), (10, found.at_10), (100, found.at_100))
    )
    return f"{name:<24} {told}  (n = {found.at_1.n}, chance @1 {found.chance_at_1:.1e})"


def _opened(stages: Path, index: Path) -> Study:
    found = {
        name: next(stages.glob(f"{stage}/*/{name}"))
        for stage, name in (
            ("midtrain", "midtrained"), ("pack", "tokens"), ("ingest", "documents"),
            ("chunk", "chunks"), ("embed", "vectors"),
        )
    }  # fmt: skip
    return Study(
        checkpoints.load(found["midtrained"]),
        TokenStream(found["tokens"]),
        vectors_of(found["vectors"], found["chunks"]),
        collapsed(found["documents"], found["chunks"]),
        open_index(index, found["midtrained"]),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in lines(_opened(Path(sys.argv[1]), Path(sys.argv[2]))):
        print(line, flush=True)
