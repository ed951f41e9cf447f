"""What removing a concept does, foretold and observed: the condition of Agreement (method §0.4).

    logit             Δℓ_y = −C(c, y)                                            exact
    log-probability   Δℓ_y − ln(1 + Σ_v p_v (e^Δℓ_v − 1)), v the likeliest tokens    nearly
    upstream          −C(c, y), where the concept's part is taken from earlier states    not exact

Observed is what the network says with the activation set to 0 at the bottleneck, or with the part
taken out of the stream before a layer, at every position the commit's group had still to write:
there the layers in between answer, and so do the positions that look at each other.
A concept that was not kept weighs nothing: foretold is 0, and 0 must be observed.

Shape suffixes used in this file:
    N token   M pair of a token and a concept   D width   V vocabulary   Y likeliest token
    S snapshot   P commit of a snapshot   T position
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.attribution import ConceptAttribution
from model.bottleneck import ConceptHead, Decomposition
from model.directions import ConceptRef
from model.language_model import LanguageModel
from model.replay import Replay, logits, replays
from model.steering import effective, override
from model.topk import TopConcepts
from model.trace import Trace
from model.transformer import Injection

_LEAST = 1e-12
"""Of the sum of probabilities, where so much was foretold to go that none is left."""


@dataclass(frozen=True)
class Removal:
    """A token, by its row among those explained, and the concept it shall do without."""

    row: int
    concept: ConceptRef


@dataclass(frozen=True)
class Effects:
    """Changes on removal, in logits and in nats, float64."""

    foretold_M: Tensor
    observed_M: Tensor
    foretold_log_M: Tensor
    observed_log_M: Tensor


def sampled(
    lm: LanguageModel, found: ConceptAttribution, rows: Sequence[int], n_kept: int,
    seed: Sequence[int],
) -> list[Removal]:  # fmt: skip
    """For each token some known and some unknown concepts it kept, and one of each it did not."""
    random = np.random.default_rng(seed)
    config = lm.concepts.config
    pairs: list[Removal] = []
    for row in rows:
        for kind, ids_Nk, n_all in (
            ("known", found.known_ids_Nk, config.n_known),
            ("unknown", found.unknown_ids_Nk, config.n_unknown),
        ):
            kept: list[int] = ids_Nk[row].tolist()
            drawn = random.permutation(len(kept))[:n_kept]
            chosen = [kept[at] for at in np.sort(drawn).tolist()]
            other = int(random.integers(n_all))
            if other not in kept:
                chosen.append(other)
            pairs.extend(Removal(row, _ref(kind, concept)) for concept in chosen)
    return pairs


@torch.no_grad()
def effects(
    lm: LanguageModel, state_ND: Tensor, token_N: Tensor, found: ConceptAttribution,
    pairs: Sequence[Removal], n_likeliest: int,
) -> Effects:  # fmt: skip
    """Remove each concept at the bottleneck, from its token's state alone."""
    rows = sorted({pair.row for pair in pairs})
    states = {row: _State(lm, state_ND[row], int(token_N[row]), n_likeliest) for row in rows}
    columns = [states[pair.row].without(pair, contribution(found, pair)) for pair in pairs]
    return Effects(*torch.tensor(columns, dtype=torch.float64).reshape(-1, 4).T)


class _State:
    """The state that chose a token, and what the network says with a concept removed from it.

    The token's logit is in float64: many known concepts weigh less than its last digit in float32.
    """

    def __init__(self, lm: LanguageModel, state_D: Tensor, token: int, n_likeliest: int) -> None:
        self._lm, self._state_D, self._token = lm, state_D, token
        self._parts = lm.concepts(state_D)
        self._logit, self._log_V = self._said(lm.composed(state_D))
        # The tokens that share most of the probability are foretold too; what the others do
        # together is taken as nothing.
        n = min(n_likeliest, len(self._log_V))
        self._likely_Y, likely_ids_Y = self._log_V.exp().topk(n)
        self._likely_YD = lm.head_VD[likely_ids_Y].double()

    def without(self, pair: Removal, contributed: float) -> tuple[float, float, float, float]:
        """Foretold and observed change of the logit, then of the log-probability."""
        known, unknown = (
            {pair.concept.id: 0.0} if pair.concept.kind == kind else {}
            for kind in ("known", "unknown")
        )
        left_D = override(self._lm, self._state_D[None, None], known, unknown)[0, 0]
        logit, log_V = self._said(left_D)
        change_Y = -(self._likely_YD @ _part(self._lm, self._parts, pair.concept).double())
        kept = 1 + float((self._likely_Y * change_Y.expm1()).sum())
        return (
            -contributed,
            logit - self._logit,
            -contributed - math.log(max(kept, _LEAST)),
            float(log_V[self._token] - self._log_V[self._token]),
        )

    def _said(self, state_D: Tensor) -> tuple[float, Tensor]:
        """The token's logit, and all log-probabilities."""
        logit = state_D.double() @ self._lm.head_VD[self._token].double()
        return float(logit), self._lm.unembed(state_D).float().log_softmax(-1)


def contribution(found: ConceptAttribution, pair: Removal) -> float:
    """C(c, y), in logits: 0 for a concept the token did not keep."""
    ids_Nk, weight_Nk = {
        "known": (found.known_ids_Nk, found.known_Nk),
        "unknown": (found.unknown_ids_Nk, found.unknown_Nk),
    }[pair.concept.kind]
    return float(weight_Nk[pair.row][ids_Nk[pair.row] == pair.concept.id].sum())


@torch.no_grad()
def upstream(
    lm: LanguageModel, trace: Trace, commits: Sequence[int], concepts: Sequence[ConceptRef],
    layers: Sequence[int],
) -> Tensor:  # fmt: skip
    """Change of each commit's logit where a concept's part is taken out after a layer.

    (layers, concepts, commits), in logits. The part is the mean of what the commits of a group
    owed to the concept; earlier groups were written with it, as the trace says.
    """
    place_of = {commit: at for at, commit in enumerate(commits)}
    change = torch.zeros(len(layers), len(concepts), len(commits))
    for replay in replays(lm, trace, commits):
        snapshots_S = torch.arange(len(replay.inputs_ST))
        used = (replay.commit_SP >= 0).nonzero(as_tuple=True)
        at = [place_of[commit] for commit in replay.commit_SP[used].tolist()]
        before_SP = logits(lm, replay, snapshots_S, replay.inputs_ST, at_once=8)
        for number, concept in enumerate(concepts):
            part_SD = _mean_part(lm, trace, replay, concept)
            for row, layer in enumerate(layers):
                changed = replace(replay, injection=_without(replay, part_SD, layer))
                after_SP = logits(lm, changed, snapshots_S, replay.inputs_ST, at_once=8)
                change[row, number, at] = (after_SP - before_SP)[used]
    return change


def _mean_part(lm: LanguageModel, trace: Trace, replay: Replay, concept: ConceptRef) -> Tensor:
    """What the commits of each snapshot owed to the concept (S, D), on the mean."""
    used_SP1 = (replay.commit_SP >= 0)[..., None]
    parts = lm.concepts(trace.state_ND[replay.commit_SP])
    part_SPD = _part(lm, parts, concept) * used_SP1
    return part_SPD.sum(1) / used_SP1.sum(1)


def _without(replay: Replay, part_SD: Tensor, layer: int) -> Injection:
    """The replay's own injection, less the part where something was still to be written."""
    where_ST = ~replay.inputs_ST
    where_ST = where_ST.scatter(1, replay.readout_SP, torch.ones_like(replay.readout_SP).bool())
    taken_STD = -(where_ST[..., None] * part_SD[:, None])
    by_layer = {} if replay.injection is None else dict(replay.injection.by_layer)
    by_layer[layer] = taken_STD + by_layer.get(layer, torch.zeros(()))
    return Injection(by_layer)


def _part(lm: LanguageModel, parts: Decomposition, concept: ConceptRef) -> Tensor:
    """The concept's part (…, D) of states: nothing where it was not kept."""
    kinds: dict[str, tuple[ConceptHead, TopConcepts]] = {
        "known": (lm.concepts.known, parts.top), "unknown": (lm.concepts.unknown, parts.top_unknown)
    }  # fmt: skip
    head, top = kinds[concept.kind]
    return effective(top, concept.id)[..., None] * head.rows(torch.tensor(concept.id)).float()


def _ref(kind: str, concept: int) -> ConceptRef:
    return ConceptRef("known" if kind == "known" else "unknown", concept)
