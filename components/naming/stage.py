"""Name: what unknown concepts are about, tested on chunks no name was found from (method §6.3).

    found from   half of the documents: activating chunks, tokens whose logits it raises
    tested on    the other half: does a judge tell activating chunks from others by the name?

Below `least_auc` a concept stays "unnamed": a network is not obliged to have nameable parts.

Shape suffixes: N chunk   D width of a vector   G document
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from components import contracts, embedding, nearest
from components.chunks import ChunkTexts
from components.embedding import Embedder, Floats
from components.judges import LanguageModelJudge, Pair
from components.naming import asked, phrases
from components.naming.asked import Card, Shown
from components.naming.config import NameConfig
from components.naming.evidence import Evidence, Sides, gathered
from components.naming.scan import Scan, scan
from components.order import Integers
from components.tokens import TokenStream
from components.unknown_names import FACTS_FILE, UNNAMED
from model import checkpoint as checkpoints
from model.directions import ConceptRef, direction
from model.events import Events, ignore
from model.intervals import Interval, intervals
from model.language_model import LanguageModel
from model.ranking import rank
from model.tokenizer import Tokenizer

_SHOWN_WORDS = 6
_EXAMPLE_CHARS = 300


def name(
    checkpoint: Path, tokens: Path, documents: Path, chunks: Path, vectors: Path, names: Path,
    config: NameConfig, events: Events = ignore,
) -> int:  # fmt: skip
    """Name the unknown concepts that contribute most. Returns how many were tried."""
    digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    lm, stream = checkpoints.load(checkpoint), TokenStream(tokens)
    found = scan(lm, stream, config, events)
    read = _Read(found, ChunkTexts(documents, chunks), vectors)
    evidence = gathered(found, config)
    top_tokens = [_top_tokens(lm, stream.tokenizer, one, config) for one in evidence]
    rows = _named(evidence, top_tokens, read, config, events)
    facts = {
        "checkpoint_digest": digest,
        "least_auc": config.least_auc,
        "found_by": "phrases" if config.namer is None else config.namer.language_model.name,
        "judged_by": f"cosine of {read.encoder.name}"
        if config.judge is None
        else config.judge.language_model.name,
        "n_unknown": lm.concepts.config.n_unknown,
        "n_active": int((found.contribution_U > 0).sum()),
        "n_tried": len(rows),
        "n_named": sum(row["name"] != UNNAMED for row in rows),
        "contribution_share_tried": sum(each.share for each in evidence),
        "contribution_share_named": sum(
            each.share for each, row in zip(evidence, rows, strict=True) if row["name"] != UNNAMED
        ),
        "n_scanned_tokens": found.n_tokens,
        "n_asked_tokens": found.n_asked,
        "n_scanned_chunks": len(found.chunk_id_C),
    }
    (names / FACTS_FILE).write_text(json.dumps(facts, indent=1))
    return contracts.write(rows, names, contracts.UNKNOWN_NAMES)


class _Read:
    """Texts and vectors of scanned chunks, by their rows in the scan."""

    def __init__(self, found: Scan, texts: ChunkTexts, vectors: Path) -> None:
        self.scan, self._texts = found, texts
        contracts.verify(vectors, contracts.VECTORS)
        self._vectors: Floats = np.load(vectors / "vectors.npy", mmap_mode="r")
        encoder = contracts.json_file(vectors, "encoder.json")
        self.encoder: Embedder = embedding.load(str(encoder["name"]))

    def text(self, rows: Integers) -> list[str]:
        return self._texts.at(self.scan.chunk_id_C[rows].tolist())

    def vectors(self, rows: Integers) -> Floats:
        return nearest.unit(self._vectors[self.scan.chunk_id_C[rows]])


def _named(
    evidence: Sequence[Evidence], top_tokens: Sequence[list[str]], read: _Read, config: NameConfig,
    events: Events,
) -> list[dict[str, object]]:  # fmt: skip
    if config.namer is None:
        cards = _by_phrases(evidence, top_tokens, read, config)
    else:
        shown = [
            Shown(read.text(each.found_on.active), read.text(each.half), tokens)
            for each, tokens in zip(evidence, top_tokens, strict=True)
        ]
        cards = asked.cards(shown, config.namer, events)
    tested = [
        _tested(each, card, read, config, events)
        for each, card in zip(evidence, cards, strict=True)
    ]
    return [
        _row(each, card, held, tokens, read, config)
        for each, card, held, tokens in zip(evidence, cards, tested, top_tokens, strict=True)
    ]


def _by_phrases(
    evidence: Sequence[Evidence], top_tokens: Sequence[list[str]], read: _Read, config: NameConfig
) -> list[Card]:
    """For each concept the best phrase that no concept before it took."""
    taken: set[str] = set()
    cards = []
    for each, tokens in zip(evidence, top_tokens, strict=True):
        active, others = read.text(each.found_on.active), read.text(each.found_on.others)
        tried = phrases.lifted(active, others, config.n_phrases)
        best = phrases.ranked(
            tried, read.vectors(_rows(each.found_on)), _is_active(each.found_on), read.encoder
        )
        chosen = next((phrase for phrase in best if phrase not in taken), "")
        taken.add(chosen)
        cards.append(Card(chosen[:1].upper() + chosen[1:], _described(tried, tokens)))
    return cards


def _described(tried: Sequence[str], tokens: Sequence[str]) -> str:
    words = ", ".join(tried[:_SHOWN_WORDS]) or "no words of their own"
    raised = ", ".join(token.strip() for token in tokens[:_SHOWN_WORDS])
    return f"Chunks with {words}; it makes {raised} likelier."


@dataclass(frozen=True)
class _Held:
    """How a name did on chunks it was not found from."""

    auc: Interval
    n: int


def _tested(
    each: Evidence, card: Card, read: _Read, config: NameConfig, events: Events
) -> _Held | None:
    """None where there is no name to test."""
    if not card.name:
        return None
    side = each.tested_on
    rows, active_N = _rows(side), _is_active(side)
    if config.judge is None:
        score_N = read.vectors(rows) @ read.encoder.embed([card.name])[0]
    else:
        pairs = [Pair(text, card.name, card.description, "concept") for text in read.text(rows)]
        judged_N = np.array(LanguageModelJudge(config.judge, events).scores(pairs))
        said_N = np.isfinite(judged_N)
        rows, active_N, score_N = rows[said_N], active_N[said_N], judged_N[said_N]
        if not active_N.any() or active_N.all():
            return None
    _, group_N = np.unique(read.scan.doc_id_C[rows], return_inverse=True)
    auc = _auc(score_N.astype(np.float32), active_N, group_N, config)
    return _Held(auc, len(rows))


def _auc(
    score_N: NDArray[np.float32], active_N: NDArray[np.bool_], group_N: Integers,
    config: NameConfig,
) -> Interval:  # fmt: skip
    """With its interval over documents."""

    def statistic(weight_WG: NDArray[np.float64]) -> NDArray[np.float64]:
        weight_NW = np.ascontiguousarray(weight_WG.T[group_N], dtype=np.float32)
        return rank(score_N, active_N, weight_NW).auroc_W[:, None]

    (found,) = intervals(
        statistic, int(group_N.max()) + 1, draws=config.bootstrap_draws, seed=config.seed
    )
    return found


def _row(
    each: Evidence, card: Card, held: _Held | None, tokens: Sequence[str], read: _Read,
    config: NameConfig,
) -> dict[str, object]:  # fmt: skip
    holds = held is not None and held.auc.value >= config.least_auc
    auc = Interval(0.5, 0.0, 1.0, 0) if held is None else held.auc
    return {
        "concept_id": each.concept_id,
        "name": card.name if holds else UNNAMED,
        "description": card.description,
        "auc": auc.value,
        "auc_low": max(0.0, auc.low),
        "auc_high": min(1.0, auc.high),
        "n_chunks": 0 if held is None else held.n,
        "contribution_share": each.share,
        "top_tokens": list(tokens),
        "example": " ".join(read.text(each.found_on.active[:1])[0].split())[:_EXAMPLE_CHARS],
    }


@torch.no_grad()
def _top_tokens(
    lm: LanguageModel, tokenizer: Tokenizer, each: Evidence, config: NameConfig
) -> list[str]:
    """The tokens of text whose logits the concept raises most."""
    raised_V = lm.unembed(direction(lm, (ConceptRef("unknown", each.concept_id),)))
    raised_V[list(tokenizer.special_names)] = -torch.inf
    n = min(config.n_top_tokens, len(raised_V) - len(tokenizer.special_names))
    return tokenizer.pieces(raised_V.topk(n).indices.tolist())


def _rows(side: Sides) -> Integers:
    return np.concatenate([side.active, side.others])


def _is_active(side: Sides) -> NDArray[np.bool_]:
    return np.arange(len(side.active) + len(side.others)) < len(side.active)
