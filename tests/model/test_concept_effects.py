"""What a contribution foretells is what removing the concept does."""

import pytest
import torch

from model.attribution import ConceptAttribution, concept_attribution
from model.concept_effects import Effects, Removal, effects, sampled, upstream
from model.directions import ConceptRef
from model.input_masking import rank_correlation
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace
from tests.model.explained import VOCABULARY, loud_network, some_prompts


def explained(lm: LanguageModel) -> tuple[Trace, ConceptAttribution]:
    (trace,) = generate(lm, some_prompts(1, 6), SamplingConfig(n_new=7))
    return trace, concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)


def observed(
    lm: LanguageModel, trace: Trace, found: ConceptAttribution, pairs: list[Removal]
) -> Effects:
    return effects(lm, trace.state_ND, trace.token_N, found, pairs, n_likeliest=VOCABULARY)


@pytest.mark.parametrize("rank", [2, None])
def test_contributions_foretell_the_logit_of_any_concept_removed(rank: int | None) -> None:
    lm = loud_network(rank=rank)
    trace, found = explained(lm)
    pairs = sampled(lm, found, range(7), n_kept=2, seed=[0])
    assert {pair.concept.kind for pair in pairs} == {"known", "unknown"}
    seen = observed(lm, trace, found, pairs)
    torch.testing.assert_close(seen.foretold_M, seen.observed_M, atol=1e-4, rtol=1e-4)
    assert rank_correlation(seen.foretold_M, seen.observed_M) > 1 - 1e-4
    torch.testing.assert_close(seen.foretold_log_M, seen.observed_log_M, atol=1e-4, rtol=1e-3)


def test_a_concept_outside_the_top_k_is_foretold_to_do_nothing_and_does_nothing() -> None:
    lm = loud_network()
    trace, found = explained(lm)
    outside = [
        Removal(3, ConceptRef("known", concept))
        for concept in set(range(9)) - set(found.known_ids_Nk[3].tolist())
    ] + [
        Removal(3, ConceptRef("unknown", concept))
        for concept in set(range(14)) - set(found.unknown_ids_Nk[3].tolist())
    ]
    seen = observed(lm, trace, found, outside)
    assert len(outside) == 6 + 9
    assert seen.foretold_M.abs().max() == seen.observed_M.abs().max() == 0.0


def test_a_contribution_that_is_wrong_is_noticed() -> None:
    lm = loud_network()
    trace, found = explained(lm)
    pair = Removal(2, ConceptRef("unknown", int(found.unknown_ids_Nk[2, 0])))
    found.unknown_Nk[2, 0] += 0.5
    seen = observed(lm, trace, found, [pair])
    assert float((seen.foretold_M - seen.observed_M).abs()) == pytest.approx(0.5, abs=1e-3)


def test_fewer_likely_tokens_foretell_the_log_probability_less_well() -> None:
    lm = loud_network()
    trace, found = explained(lm)
    pairs = sampled(lm, found, [0, 4], n_kept=3, seed=[1])
    errors = [
        (seen.foretold_log_M - seen.observed_log_M).abs().mean()
        for n in (1, VOCABULARY)
        for seen in [effects(lm, trace.state_ND, trace.token_N, found, pairs, n_likeliest=n)]
    ]
    assert errors[0] > 10 * errors[1]


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
@torch.no_grad()
def test_upstream_a_part_is_taken_out_where_the_token_was_read_off(attention: str) -> None:
    lm = loud_network(attention)
    trace, found = explained(lm)
    concepts = [ConceptRef("known", int(found.known_ids_Nk[3, 0])), ConceptRef("unknown", 4)]
    change = upstream(lm, trace, [3, 0], concepts, layers=[0, 2])
    assert change.shape == (2, 2, 2)
    assert change[:, 0, 0].abs().min() > 0
    kept = found.unknown_ids_Nk[[3, 0]] == 4
    assert torch.equal(change[1, 1] != 0, kept.any(-1))


@torch.no_grad()
def test_upstream_of_the_last_norm_by_hand() -> None:
    lm = loud_network()
    trace, found = explained(lm)
    concept = int(found.known_ids_Nk[0, 0])
    part_D = lm.concepts.known.rows(torch.tensor(concept)) * float(
        lm.concepts(trace.state_ND[:1]).top.activations[0, 0]
    )
    streams: list[torch.Tensor] = []
    handle = lm.backbone.layers[-1].register_forward_hook(
        lambda _module, _inputs, out: streams.append(out[0] if isinstance(out, tuple) else out)
    )
    snapshot = trace.snapshot(0)
    lm.hidden(snapshot.ids_T[None])
    handle.remove()
    at = int(snapshot.readout_N[0])
    without_D = lm.backbone.norm(streams[0][0, at] - part_D)
    logit = lm.unembed(without_D)[trace.token_N[0]]
    change = upstream(lm, trace, [0], [ConceptRef("known", concept)], layers=[2])
    torch.testing.assert_close(change[0, 0, 0], logit - trace.logit_N[0], atol=1e-4, rtol=1e-4)
