"""The exact account of some tokens' logits: shares with intervals, and what each concept did.

Contributions are signed and in logits. A concept's share of a chunk is the mean over the chunk's
tokens of its contribution by the magnitude of all parts; tokens that did not keep it count 0.

Shape suffixes: N token of the text, in reading order   k concept kept
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from components.explaining.schema import ConceptContribution, Estimate, Kind, Shares
from components.explaining.vocabulary import Vocabulary
from model.attribution import ConceptAttribution, shares
from model.intervals import ratio_interval

_TINY = 1e-12


@dataclass(frozen=True)
class Account:
    """What concepts did for the tokens of a text."""

    found: ConceptAttribution
    vocabulary: Vocabulary

    @property
    def magnitude_N(self) -> Tensor:
        """Sum of the magnitudes of the parts: every known concept, û, ε."""
        found = self.found
        return found.known_Nk.abs().sum(-1) + found.unknown_N.abs() + found.residual_N.abs()

    def shares(self, rows: slice, draws: int) -> Shares:
        """Of some tokens, with 95% intervals over them."""
        known_N, unknown_N, residual_N = self._parts(rows)
        signed = shares(known_N, unknown_N, residual_N)
        total_N = known_N.abs() + unknown_N.abs() + residual_N.abs()
        estimates = [_share(part_N, total_N, draws) for part_N in (known_N, unknown_N, residual_N)]
        return Shares(
            known_share=estimates[0], unknown_share=estimates[1], residual_share=estimates[2],
            known_signed_share=signed.known_signed,
            unknown_signed_share=signed.unknown_signed,
            residual_signed_share=signed.residual_signed,
        )  # fmt: skip

    def concepts(self, rows: slice, top: int) -> tuple[ConceptContribution, ...]:
        """The known concepts that did most for some tokens, for or against, and as many unknown
        ones; by the size of their share."""
        kinds: tuple[tuple[Kind, Tensor, Tensor], ...] = (
            ("known", self.found.known_ids_Nk[rows], self.found.known_Nk[rows]),
            ("unknown", self.found.unknown_ids_Nk[rows], self.found.unknown_Nk[rows]),
        )
        scale_N = self.magnitude_N[rows].clamp_min(_TINY)
        listed = [
            contribution
            for kind, ids_Nk, weight_Nk in kinds
            for contribution in self._strongest(kind, ids_Nk, weight_Nk, scale_N, top)
        ]
        return tuple(sorted(listed, key=lambda one: -abs(one.signed_share)))

    def signed_share(self, kind: Kind, concept_id: int) -> float:
        """Of one concept over the whole text."""
        found = self.found
        ids_Nk, weight_Nk = {
            "known": (found.known_ids_Nk, found.known_Nk),
            "unknown": (found.unknown_ids_Nk, found.unknown_Nk),
        }[kind]
        mine_N = weight_Nk.where(ids_Nk == concept_id, 0.0).sum(-1)
        return float((mine_N / self.magnitude_N.clamp_min(_TINY)).mean())

    def _parts(self, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        found = self.found
        return found.known_N[rows], found.unknown_N[rows], found.residual_N[rows]

    def _strongest(
        self, kind: Kind, ids_Nk: Tensor, weight_Nk: Tensor, scale_N: Tensor, top: int
    ) -> list[ConceptContribution]:
        concepts, which_M = torch.unique(ids_Nk, return_inverse=True)
        n_tokens, n = len(ids_Nk), len(concepts)
        at_M, weight_M = which_M.flatten(), weight_Nk.flatten()
        share_C = torch.zeros(n).index_add_(0, at_M, (weight_Nk / scale_N[:, None]).flatten())
        logits_C = torch.zeros(n).index_add_(0, at_M, weight_M)
        count_C = at_M.bincount(minlength=n)
        return [
            ConceptContribution(
                kind=kind, concept_id=int(concepts[at]),
                name=self.vocabulary.name(kind, int(concepts[at])),
                contribution_logits=float(logits_C[at]) / n_tokens,
                signed_share=float(share_C[at]) / n_tokens, n_tokens=int(count_C[at]),
            )
            for at in share_C.abs().topk(min(top, n)).indices.tolist()
        ]  # fmt: skip


def _share(part_N: Tensor, total_N: Tensor, draws: int) -> Estimate:
    """Σ |part| / Σ total; tokens are drawn again for the interval."""
    found = ratio_interval(_floats(part_N.abs()), _floats(total_N) + _TINY, draws=draws, seed=0)
    low, high = max(0.0, min(found.low, found.value)), min(1.0, max(found.high, found.value))
    return Estimate(value=found.value, low=low, high=high, n=len(part_N))


def _floats(values_N: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(values_N.double().numpy())
