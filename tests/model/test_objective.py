"""Gradient routing, one test a row of method §3.6, and denominators that ignore how one splits."""

import statistics

import pytest
import torch

from model import forcing
from model.curve import means
from model.diffusion import fixed, question
from model.forcing import Chances
from model.objective import Example, Objective, counts, weights
from model.terms import NLL_BINS, Term
from model.train_config import ObjectiveConfig
from tests.model import tiny

KNOWN_EMBEDDING = "bottleneck.known.embedding_KD"
KNOWN_PREDICTOR = "bottleneck.known.predictor_KD"
BACKBONE = "backbone.layers.0.attention.c_attn.weight"
UNKNOWN = tuple(
    f"bottleneck.unknown.{name}"
    for name in ("predictor_RD", "predictor_UR", "embedding_UR", "embedding_RD")
)


def example(network, chances=None, sparse=False, batch=None):
    batch = batch or tiny.batch()
    return Example(
        batch=batch,
        asked=question(batch, fixed(0.6), 0, 3, network.config),
        forcing=forcing.draw(batch, chances or Chances(), seed=0, step=3),
        sparse=sparse,
    )


def touched(term, chances=None, config=None, *, sparse=False, residual=True):
    """Names of the parameters that this term's gradient reaches."""
    network = tiny.lm(residual=residual)
    sums_S = Objective(network, config or ObjectiveConfig())(example(network, chances, sparse))
    sums_S[term].backward()
    return {
        name
        for name, parameter in network.named_parameters()
        if parameter.grad is not None and bool((parameter.grad != 0).any())
    }


RESIDUAL_KEPT = [Chances(), Chances(known=1.0, unknown=1.0), Chances(known=1.0, known_dropped=1.0)]


def test_the_language_loss_reaches_the_backbone():
    assert BACKBONE in touched(Term.LANGUAGE)


@pytest.mark.parametrize("residual", [0.0, 1.0])
@pytest.mark.parametrize("unknown", [0.0, 1.0])
def test_the_language_loss_never_reaches_the_unknown_head(residual, unknown):
    reached = touched(Term.LANGUAGE, Chances(unknown=unknown, residual_dropped=residual))
    assert not reached & set(UNKNOWN)


@pytest.mark.parametrize("chances", RESIDUAL_KEPT)
def test_with_its_residual_intact_the_language_loss_never_reaches_known_concepts(chances):
    assert not {name for name in touched(Term.LANGUAGE, chances) if "known" in name}


def test_where_the_residual_is_dropped_it_reaches_embeddings_and_predictor():
    reached = touched(Term.LANGUAGE, Chances(residual_dropped=1.0))
    assert {KNOWN_EMBEDDING, KNOWN_PREDICTOR, BACKBONE} <= reached


def test_forced_and_dropped_it_teaches_the_embeddings_of_the_labels():
    reached = touched(Term.LANGUAGE, Chances(known=1.0, unknown=1.0, residual_dropped=1.0))
    assert KNOWN_EMBEDDING in reached


def test_without_a_residual_the_language_loss_teaches_known_concepts_and_still_no_unknown_one():
    reached = touched(Term.LANGUAGE, residual=False)
    assert {KNOWN_EMBEDDING, KNOWN_PREDICTOR, BACKBONE} <= reached
    assert not reached & set(UNKNOWN)


def test_without_a_residual_the_named_parts_contribute_everything():
    network = tiny.lm(residual=False)
    one = example(network)
    means_S = Objective(network, ObjectiveConfig())(one) / counts(one, network, ObjectiveConfig())
    assert float(means_S[Term.CONTRIBUTION].detach()) == pytest.approx(1.0)
    assert float(means_S[Term.NORM_RESIDUAL].detach()) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_concept_loss_reaches_predictor_and_backbone_and_nothing_else_of_the_module(sparse):
    reached = touched(Term.CONCEPT, sparse=sparse)
    assert {KNOWN_PREDICTOR, "bottleneck.known.bias_K", BACKBONE} <= reached
    assert not reached & {KNOWN_EMBEDDING, *UNKNOWN}


@pytest.mark.parametrize("term", [Term.RECONSTRUCTION, Term.INDEPENDENCE])
@pytest.mark.parametrize("independence", ["known_unknown", "two_term"])
@pytest.mark.parametrize("sparse", [False, True])
def test_reconstruction_and_independence_reach_the_unknown_head_alone(term, independence, sparse):
    config = ObjectiveConfig(independence=independence)
    assert touched(term, config=config, sparse=sparse) == set(UNKNOWN)


def test_reports_train_nothing():
    weights_S = weights(ObjectiveConfig(), torch.ones(len(Term)))
    assert weights_S.nonzero().flatten().tolist() == list(range(Term.NLL))


def test_nats_by_noise_bin_add_up_and_stand_in_the_bin_of_their_rate():
    network = tiny.lm()
    batch = tiny.batch()
    for rate, place in ((0.1, 0), (0.11, 1), (0.5, 4), (1.0, 9)):
        one = Example(
            batch=batch,
            asked=question(batch, fixed(rate), 0, 3, network.config),
            forcing=forcing.draw(batch, Chances(), seed=0, step=3),
            sparse=False,
        )
        sums_S = Objective(network, ObjectiveConfig())(one).detach()
        counts_S = counts(one, network, ObjectiveConfig())
        assert counts_S[NLL_BINS].nonzero().flatten().tolist() == [place]
        torch.testing.assert_close(sums_S[NLL_BINS][place], sums_S[Term.NLL])


def test_reports_of_the_parts_are_those_of_the_dense_heads():
    network = tiny.lm()
    one = example(network)
    with torch.no_grad():
        sums_S = Objective(network, ObjectiveConfig())(one)
        hidden_ND = network.hidden(one.asked.noisy_BT)[one.asked.masked_BT]
        known, unknown = network.concepts.known, network.concepts.unknown
        active_NK = known.logits(hidden_ND).sigmoid()
        known_ND = active_NK @ known.embedding_KD
        unknown_ND = (
            unknown.logits(hidden_ND).sigmoid() @ unknown.embedding_UR @ unknown.embedding_RD
        )
    expected = [
        known_ND.norm(dim=1).sum(),
        unknown_ND.norm(dim=1).sum(),
        (hidden_ND - known_ND - unknown_ND).norm(dim=1).sum(),
        (active_NK > 0.5).sum().float(),
    ]
    found = sums_S[Term.NORM_KNOWN : Term.ACTIVE_KNOWN + 1]
    torch.testing.assert_close(found, torch.stack(expected))


@pytest.mark.parametrize("or_tokens", ["masked", "all"])
@pytest.mark.parametrize("sparse", [False, True])
def test_mean_activations_on_labelled_and_other_concepts_are_those_of_whole_logits(
    or_tokens, sparse
):
    network, batch = tiny.lm(), tiny.batch()
    batch.concepts_CM[0] = -1  # labelled with nothing, which is not "no concepts"
    config = ObjectiveConfig(or_tokens=or_tokens)
    one = example(network, sparse=sparse, batch=batch)
    asked_BT = one.asked.masked_BT if or_tokens == "masked" else torch.ones_like(batch.ids_BT) > 0
    sums = {True: [], False: []}
    with torch.no_grad():
        found_S = means(Objective(network, config)(one), counts(one, network, config))
        active_BTK = network.concepts.known.logits(network.hidden(one.asked.noisy_BT)).sigmoid()
    for row, place in asked_BT.nonzero().tolist():
        chunk = int(batch.chunk_BT[row, place])
        if chunk < 0 or not batch.labelled_C[chunk] or chunk == 0:
            continue
        labels = batch.concepts_CM[chunk].tolist()
        for concept, activation in enumerate(active_BTK[row, place].tolist()):
            sums[concept in labels].append(activation)
    assert float(found_S[Term.LABELLED]) == pytest.approx(statistics.fmean(sums[True]), rel=1e-5)
    assert float(found_S[Term.UNLABELLED]) == pytest.approx(statistics.fmean(sums[False]), rel=1e-5)


@pytest.mark.parametrize("reduction", ["token_mean", "block_mean", "elbo"])
@pytest.mark.parametrize("or_tokens", ["masked", "all"])
def test_sums_and_counts_of_parts_add_up_to_those_of_the_whole(reduction, or_tokens):
    network = tiny.lm()
    config = ObjectiveConfig(reduction=reduction, or_tokens=or_tokens)
    objective = Objective(network, config)
    chances = Chances(known=0.5, unknown=0.5, known_dropped=0.3, residual_dropped=0.4)
    batch = tiny.batch(6)
    whole = example(network, chances, batch=batch)
    halves = [example(network, chances, batch=batch.part(slice(i, None, 2))) for i in range(2)]
    with torch.no_grad():
        torch.testing.assert_close(sum(objective(half) for half in halves), objective(whole))
    added = sum(counts(half, network, config) for half in halves)
    assert torch.equal(added, counts(whole, network, config))


def test_reductions_by_hand():
    """Uniform predictions, so that every token costs ln V and only the weights matter."""
    network = tiny.lm("cdlm")
    with torch.no_grad():
        network.embedding.weight.zero_()
    one = example(network)
    per_token = float(torch.log(torch.tensor(float(tiny.VOCAB))))
    for reduction in ("token_mean", "block_mean"):
        config = ObjectiveConfig(reduction=reduction)
        sums_S, counts_S = Objective(network, config)(one), counts(one, network, config)
        mean = float((sums_S[Term.LANGUAGE] / counts_S[Term.LANGUAGE]).detach())
        assert mean == pytest.approx(per_token, rel=1e-5)
    config = ObjectiveConfig(reduction="elbo")
    sums_S, counts_S = Objective(network, config)(one), counts(one, network, config)
    n_masked = float(one.asked.masked_BT.sum())
    assert float(counts_S[Term.LANGUAGE]) == 3 * 18
    assert float(sums_S[Term.LANGUAGE].detach()) == pytest.approx(per_token * n_masked / 0.6)


def test_block_mean_weighs_a_block_with_one_masked_token_like_a_full_one():
    network, config = tiny.lm("cdlm"), ObjectiveConfig(reduction="block_mean")
    one = example(network)
    masked_BT = torch.zeros_like(one.asked.masked_BT)
    masked_BT[0, 5:10], masked_BT[1, 11] = True, True
    one.asked.masked_BT.copy_(masked_BT)
    sums_S = Objective(network, config)(one).detach()
    network_nll = torch.nn.functional.cross_entropy(
        network(one.asked.noisy_BT)[masked_BT], one.asked.target_BT[masked_BT], reduction="none"
    )
    expected = network_nll[:5].mean() + network_nll[5]
    torch.testing.assert_close(sums_S[Term.LANGUAGE], expected.detach())
    assert counts(one, network, config)[Term.LANGUAGE] == 2


@pytest.mark.parametrize("family", ["ar", "cdlm"])
def test_a_family_without_concepts_has_one_term(family):
    network = tiny.lm(family)
    one = example(network)
    sums_S, counts_S = (
        Objective(network, ObjectiveConfig())(one),
        counts(one, network, ObjectiveConfig()),
    )
    told = {Term(place) for place in (sums_S != 0).nonzero().flatten().tolist()}
    assert told - set(list(Term)[NLL_BINS]) == {Term.LANGUAGE, Term.NLL}
    assert (counts_S != 0).tolist() == (sums_S != 0).tolist()


def test_the_ar_loss_is_that_of_the_next_token():
    network = tiny.lm("ar_concept")
    batch = tiny.batch()
    one = example(network, batch=batch)
    sums_S = Objective(network, ObjectiveConfig())(one)
    logits_BTV, target_BT = network(batch.ids_BT)[:, :-1], batch.ids_BT[:, 1:]
    kept = target_BT != tiny.SPECIALS.pad_id
    expected = torch.nn.functional.cross_entropy(logits_BTV[kept], target_BT[kept], reduction="sum")
    torch.testing.assert_close(sums_S[Term.NLL], expected)


def test_a_batch_without_any_chunk_trains_the_rest():
    network, batch = tiny.lm(), tiny.batch()
    nothing = torch.full_like(batch.chunk_BT, -1)
    bare = type(batch)(
        batch.ids_BT, nothing, batch.concepts_CM[:0], batch.labelled_C[:0], batch.sample_ids_B
    )
    one = example(network, Chances(known=1.0, unknown=1.0, residual_dropped=0.5), batch=bare)
    sums_S = Objective(network, ObjectiveConfig())(one)
    assert bool(sums_S.isfinite().all())
    assert float(sums_S[Term.CONCEPT].detach()) == 0.0
    assert counts(one, network, ObjectiveConfig())[Term.CONCEPT] == 0
