"""Gradient norms by term: exact, split like everything else, without a trace in the training."""

import pytest
import torch

from model.engine import PlainEngine
from model.events import Event
from model.objective import counts, weights
from model.term_norms import gradient, trained
from model.terms import Term
from model.train import example_at, fit
from tests.model import parity, tiny


def asked(engine, config, step=2, lifted=None, n_parts=1):
    """Micro-batches of a step, and the weights of its terms."""
    batch = tiny.batch_at(step)
    parts = [batch.part(slice(k, None, n_parts)) for k in range(n_parts)]
    examples = [example_at(part, engine, config, step, lifted) for part in parts]
    counts_S = torch.stack([counts(one, engine.lm, config.objective) for one in examples]).sum(0)
    return examples, weights(config.objective, counts_S)


def test_the_terms_gradients_sum_to_the_gradient_of_the_step():
    config = tiny.training()
    engine = PlainEngine(tiny.lm(), config)
    (example,), weights_S = asked(engine, config)
    parameters = list(engine.lm.parameters())
    summed = [torch.zeros_like(one) for one in parameters]
    for term in trained(weights_S):
        parts = gradient(engine.sums, parameters, [example], term, float(weights_S[term]))
        summed = [one + part for one, part in zip(summed, parts, strict=True)]
    assert all(one.grad is None for one in parameters)
    engine.backward((engine.sums(example) * weights_S).sum())
    for one, total in zip(parameters, summed, strict=True):
        torch.testing.assert_close(total, one.grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("family", ["ar", "cdlm_concept"])
@pytest.mark.parametrize("n_parts", [1, 3])
def test_norms_are_those_of_separate_backward_passes(family, n_parts):
    config = tiny.training()
    engine = PlainEngine(tiny.lm(family), config)
    found = engine.gradient_norms(*asked(engine, config, n_parts=n_parts))
    assert list(found) == list(Term)[: 4 if family == "cdlm_concept" else 1]
    for term, norm in found.items():
        alone = PlainEngine(tiny.lm(family), config)
        (example,), weights_S = asked(alone, config)
        alone.backward(alone.sums(example)[term] * weights_S[term])
        parts = [one.grad for one in alone.lm.parameters() if one.grad is not None]
        whole = torch.cat([part.flatten() for part in parts]).double().norm()
        assert norm == pytest.approx(float(whole), rel=1e-5)
        assert norm > 0.0


def test_a_steering_step_has_terms_of_its_own():
    config = parity.Case(steered=True).training
    engine = PlainEngine(tiny.lm(), config)
    found = engine.gradient_norms(*asked(engine, config, step=5, lifted=parity.LIFTED))
    assert list(found) == [Term.LANGUAGE, Term.RESPOND, Term.EXPRESS]
    assert min(found.values()) > 0.0


def run(every):
    config = tiny.training(10, gradient_norms_every=every, micro_batches=2)
    engine, told = PlainEngine(tiny.lm(), config), list[Event]()
    history = fit(engine, config, tiny.batch_at, [tiny.batch()], told.append)
    norms = {e.step: e.metrics for e in told if "gradient_norm/concept" in e.metrics}
    return history, list(engine.finished().parameters()), norms


def test_measuring_changes_no_loss_and_no_weight_and_comes_at_fixed_steps():
    history, weights_measured, norms = run(every=4)
    assert list(norms) == [4, 8]
    terms = ("language", "concept", "reconstruction", "independence")
    assert list(norms[4]) == [f"gradient_norm/{name}" for name in terms]
    unmeasured, weights_plain, nothing = run(every=0)
    assert nothing == {}
    assert history == unmeasured
    assert all(map(torch.equal, weights_measured, weights_plain))
