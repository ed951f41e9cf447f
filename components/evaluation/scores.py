"""The names, units and intervals of everything measured (paper §7, method §0.4).

Each score answers to one condition of an inherently interpretable model, or to capability:

    nativeness      the named parts are on the path to the output
    agreement       an attribution foretells what an intervention does
    validity        interventions stay among states the network was trained on
    interpretation  the card describes the internal variable
    coverage        the named parts carry the prediction, the residual little
"""

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from components.alignment import Alignment
from components.evaluation.concepts import Recognition
from components.evaluation.reading import Ledger, Reading
from components.scores import Condition, Score, Scorer, Scores, scored
from model.intervals import by_group, intervals
from model.likelihood import Estimate
from model.metrics import concept_nats, presence

Floats = NDArray[np.float64]

NORMAL_95 = 1.96


def of_estimate(found: Estimate) -> Score:
    """A likelihood estimate; its interval is ± 1.96 standard errors."""
    margin = NORMAL_95 * found.standard_error_nats
    return Score(
        value=found.nats_per_token, n=found.n_sequences, n_of="sequences",
        low=found.nats_per_token - margin, high=found.nats_per_token + margin,
        unit="nats per token", condition="capability",
        note=f"{found.samples} draw(s) of noise, {found.n_tokens} tokens counted",
    )  # fmt: skip


def of_losses(ledger: Ledger, scorer: Scorer, suffix: str) -> Scores:
    """The loss, beside what a unigram model pays for the same tokens."""
    tokens_G, unit = ledger["tokens"], "nats per token"
    gain_G = ledger["unigram"] - ledger["nll"]
    return {
        f"nll_nats_per_token{suffix}": scorer.ratio(ledger["nll"], tokens_G, unit, "capability"),
        f"unigram_nats_per_token{suffix}": scorer.ratio(
            ledger["unigram"], tokens_G, unit, "capability",
            "the same tokens, from the counts of the training text",
        ),
        f"gain_over_unigram_nats_per_token{suffix}": scorer.ratio(
            gain_G, tokens_G, unit, "capability", "paired"
        ),
    }  # fmt: skip


def of_bytes(
    nats_G: Floats, bytes_G: Floats, domain_G: NDArray[np.str_], scorer: Scorer, note: str
) -> Scores:
    """Bits per byte of text, over all of it and by domain."""
    found: Scores = {}
    for name in ("", *sorted(set(domain_G.tolist()))):
        inside_G = np.ones(len(domain_G), bool) if not name else domain_G == name
        if bytes_G[inside_G].sum() > 0:
            bits_G = nats_G[inside_G] / math.log(2)
            key = f"bits_per_byte_{name}" if name else "bits_per_byte"
            found[key] = scorer.ratio(
                bits_G, bytes_G[inside_G], "bits per byte", "capability", note
            )
    return found


def of_parts(reading: Reading, scorer: Scorer, suffix: str) -> Scores:
    """What the named parts carry, and what happens without one of them."""
    ledger, tokens_G = reading.ledger, reading.ledger["tokens"]
    share, nats = "share of the absolute logit", "nats per token"

    def coverage(name: str, unit: str = share, note: str = "") -> Score:
        return scorer.ratio(ledger[name], tokens_G, unit, "coverage", note)

    return {
        "concept_contribution": coverage("contribution", note="known and unknown, absolute"),
        "known_share": coverage("known_share", note="the named library alone, absolute"),
        "known_share_signed": coverage("known_signed"),
        "unknown_share_signed": coverage("unknown_signed"),
        "residual_share_signed": coverage("residual_signed"),
        f"nll_nats_per_token{suffix}_residual_zero": coverage(
            "residual_zero", nats, "from known and unknown parts alone, same tokens"
        ),
        f"cost_of_residual_zero_nats_per_token{suffix}": scorer.ratio(
            ledger["residual_zero"] - ledger["nll"], tokens_G, nats, "coverage", "paired"
        ),
        f"cost_of_known_zero_nats_per_token{suffix}": scorer.ratio(
            ledger["known_zero"] - ledger["nll"], tokens_G, nats, "nativeness",
            "paired: what silencing every known concept costs",
        ),
        "logit_sum_error_max": Score(
            value=reading.largest_logit_error, n=reading.n_tokens, n_of="tokens", low=0.0,
            high=reading.largest_logit_error, unit="logits", condition="nativeness",
            note="|logit of the whole state - sum of its parts'|; the largest seen",
        ),
        f"nll_nats_per_token{suffix}_concepts_forced": scorer.ratio(
            ledger["taught_forced"], ledger["taught_tokens"], nats, "validity",
            "from the labels' embeddings and the unknown part: a state training forces",
        ),
        f"gain_of_forcing_nats_per_token{suffix}": scorer.ratio(
            ledger["taught_residual_zero"] - ledger["taught_forced"], ledger["taught_tokens"],
            nats, "validity", "paired with the network's own concepts, residual zero in both",
        ),
    }  # fmt: skip


def of_agreement(reading: Reading, scorer: Scorer) -> Scores:
    """Foretold and seen changes of a logit when a concept is silenced."""
    foretold_N = np.concatenate([one.predicted_N.double().numpy() for one in reading.agreement])
    seen_N = np.concatenate([one.observed_N.double().numpy() for one in reading.agreement])
    return {
        "agreement_error_logits": scorer.mean(
            np.abs(foretold_N - seen_N), "tokens", "logits", "agreement",
            "|foretold - seen| when a token's strongest known concept is set to zero",
        ),
        "agreement_effect_logits": scorer.mean(
            np.abs(seen_N), "tokens", "logits", "agreement", "size of the changes seen"
        ),
    }  # fmt: skip


def of_concepts(
    absence_SK: Tensor, label_SK: Tensor, document_S: NDArray[np.int64], scorer: Scorer
) -> Scores:
    """Concept loss beside its base rates, and how many concepts ever speak."""
    nats_S = concept_nats(absence_SK, label_SK).double().numpy()
    n_documents = int(document_S.max()) + 1
    nats_G = by_group(nats_S, document_S, n_documents)
    chunks_G = by_group(np.ones(len(document_S)), document_S, n_documents)
    one_rate, own_rates = _base_rates(label_SK, document_S, scorer)
    active_K = (presence(absence_SK) > 0.5).any(dim=0).double().numpy()
    return {
        "concept_loss_nats": scorer.ratio(
            nats_G, chunks_G, "nats per chunk and concept", "interpretation",
            "OR over a chunk's masked tokens, all concepts",
        ),
        "concept_loss_base_rate_nats": one_rate,
        "concept_loss_prevalence_nats": own_rates,
        "concepts_active_share": scorer.mean(
            active_K, "concepts", "share of concepts", "interpretation",
            "probability above 0.5 in one held-out chunk or more",
        ),
    }  # fmt: skip


def of_recognition(found: Recognition, suffix: str, note: str) -> Scores:
    """AUROC and average precision, macro over the concepts that have enough positives."""
    note = f"macro over {len(found.concept_L)} concepts; {note}"
    area, precision = found.auroc_macro, found.average_precision_macro
    return {
        f"concept_auroc_macro{suffix}": scored(area, "documents", "area", "interpretation", note),
        f"concept_average_precision_macro{suffix}": scored(
            precision, "documents", "precision", "interpretation", note
        ),
    }


def of_dependence(reading: Reading, scorer: Scorer) -> Scores:
    """Linear dependence between the known and the unknown part."""
    paper_G = np.array([one.paper for one in reading.dependence])
    cka_G = np.array([one.cka for one in reading.dependence])
    condition: Condition = "interpretation"
    return {
        "independence_loss": scorer.mean(
            paper_G, "sequences", "squared state units", condition, "form of the paper, eq. 13-14"
        ),
        "independence_cka": scorer.mean(
            cka_G, "sequences", "0 to 1", condition, "scale-free; 0 is independent"
        ),
    }


def of_alignment(found: Alignment, judge: str, scorer: Scorer) -> Scores:
    """The offline judge's three numbers; the first means nothing without the other two."""
    note = f"offline judge: cosine of card and top tokens by {judge}"
    condition: Condition = "interpretation"
    return {
        "alignment_cosine": scorer.mean(
            found.cosine_K, "concepts", "cosine", condition, f"{note}; own pairings"
        ),
        "alignment_cosine_shuffled": scorer.mean(
            found.shuffled_K, "concepts", "cosine", condition, f"{note}; all wrong pairings"
        ),
        "alignment_auroc": scorer.mean(
            found.auroc_K,
            "concepts",
            "area",
            condition,
            f"{note}; own against wrong, 0.5 is chance",
        ),
    }


def _base_rates(
    label_SK: Tensor, document_S: NDArray[np.int64], scorer: Scorer
) -> tuple[Score, Score]:
    """Concept loss of one constant, and of one constant a concept."""
    numbers, document_S = np.unique(document_S, return_inverse=True)
    labels_GK = np.zeros((len(numbers), label_SK.shape[1]))
    np.add.at(labels_GK, document_S, label_SK.numpy().astype(np.float64))
    chunks_G1 = np.bincount(document_S).astype(np.float64)[:, None]

    def entropies(weight_WG: Floats) -> Floats:
        rate_WK = (weight_WG @ labels_GK) / (weight_WG @ chunks_G1)
        one_W = _entropy(rate_WK.mean(axis=1))
        return np.stack([one_W, _entropy(rate_WK).mean(axis=1)], axis=1)

    found = intervals(entropies, len(numbers), draws=scorer.draws, seed=scorer.seed)
    unit = "nats per chunk and concept"
    return (
        scored(found[0], "documents", unit, "interpretation", "one base rate for all"),
        scored(found[1], "documents", unit, "interpretation", "each concept's own rate"),
    )


def _entropy(rate: Floats) -> Floats:
    inside = np.clip(rate, 1e-12, 1 - 1e-12)
    return np.asarray(-(inside * np.log(inside) + (1 - inside) * np.log1p(-inside)))
