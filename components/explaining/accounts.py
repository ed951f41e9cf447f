"""What concepts did for some tokens of a text, with their names (paper §6.1.2).

Shares have one denominator, the magnitudes of all concepts and of the residual: `model` says how.

Shape suffixes: N token of the text, in reading order   k concept kept
"""

from dataclasses import dataclass

from components.explaining.schema import ConceptContribution, Estimate, Kind, Shares
from components.explaining.vocabulary import Vocabulary
from model.attribution import ConceptAttribution
from model.concept_shares import ConceptShare, magnitude, part_shares, strongest
from model.intervals import Interval

_KINDS: tuple[Kind, ...] = ("known", "unknown")


@dataclass(frozen=True)
class Account:
    """What concepts did for the tokens of a text."""

    found: ConceptAttribution
    vocabulary: Vocabulary

    def shares(self, rows: slice, draws: int) -> Shares:
        """Of some tokens, with 95% intervals over them."""
        parts = part_shares(self.found, rows, draws=draws, seed=0)
        return Shares(
            known_share=_estimate(parts.known),
            unknown_share=_estimate(parts.unknown),
            residual_share=_estimate(parts.residual),
            known_signed_share=parts.known_signed.value,
            unknown_signed_share=parts.unknown_signed.value,
            residual_signed_share=parts.residual_signed.value,
        )

    def concepts(self, rows: slice, top: int) -> tuple[ConceptContribution, ...]:
        """The known concepts that did most for some tokens, for or against, and as many unknown
        ones; by the size of their share."""
        listed = strongest(self.found, rows)
        kept = {
            one.concept
            for kind in _KINDS
            for one in [each for each in listed if each.concept.kind == kind][:top]
        }
        return tuple(self._named(one) for one in listed if one.concept in kept)

    def signed_share(self, kind: Kind, concept_id: int) -> float:
        """Of one concept over the whole text."""
        found = self.found
        ids_Nk, weight_Nk = {
            "known": (found.known_ids_Nk, found.known_Nk),
            "unknown": (found.unknown_ids_Nk, found.unknown_Nk),
        }[kind]
        mine_N = weight_Nk.where(ids_Nk == concept_id, 0.0).sum(-1)
        return float((mine_N / magnitude(found)).mean())

    def _named(self, one: ConceptShare) -> ConceptContribution:
        kind, concept_id = one.concept.kind, one.concept.id
        return ConceptContribution(
            kind=kind, concept_id=concept_id, name=self.vocabulary.name(kind, concept_id),
            contribution_logits=one.logits, signed_share=one.share, n_tokens=one.n_tokens,
        )  # fmt: skip


def _estimate(share: Interval) -> Estimate:
    """Bootstrapped ends can lie a little outside of what a share can be."""
    low, high = max(0.0, min(share.low, share.value)), min(1.0, max(share.high, share.value))
    return Estimate(value=share.value, low=low, high=high, n=share.n_groups)
