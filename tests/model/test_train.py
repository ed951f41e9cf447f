"""The loop: a golden curve, splits that change nothing, and a guard against what is not finite."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from model.diffusion import Batch
from model.endings import DivergedError
from model.engine import PlainEngine, dtype
from model.events import Event
from model.train import fit
from tests.model import tiny

GOLDEN = Path(__file__).parent.parent / "golden" / "losses.json"


def curve(family="cdlm_concept", n_steps=20, **changes):
    config = tiny.training(n_steps, **changes)
    engine = PlainEngine(tiny.lm(family), config)
    return fit(engine, config, tiny.batch_at, [tiny.batch(6, seed=99)])


@pytest.mark.parametrize("family", ["ar", "cdlm", "ar_concept", "cdlm_concept"])
def test_twenty_steps_give_the_golden_curve(family):
    golden = json.loads(GOLDEN.read_text())[family]
    for row, expected in zip(curve(family).rows, golden, strict=True):
        found = {name: value for name, value in asdict(row).items() if name in expected}
        assert found == pytest.approx(expected, rel=1e-3)


def test_training_learns():
    rows = curve(n_steps=60).rows
    assert rows[-1].nll_nats < rows[0].nll_nats - 0.15


@pytest.mark.parametrize("micro_batches", [2, 3])
def test_micro_batches_change_nothing(micro_batches):
    whole, parts = curve(), curve(micro_batches=micro_batches)
    for one, other in zip(whole.rows, parts.rows, strict=True):
        assert one.nll_nats == pytest.approx(other.nll_nats, rel=1e-5)
        assert one.concept_loss == pytest.approx(other.concept_loss, rel=1e-5)


def test_low_precision_stays_near_the_golden_curve():
    exact, low = curve(), curve(dtype="bfloat16")
    for one, other in zip(exact.rows, low.rows, strict=True):
        assert one.nll_nats == pytest.approx(other.nll_nats, rel=2e-2)


def test_rows_rise_and_measure_what_was_asked():
    rows = curve().rows
    assert [row.step for row in rows] == [5, 10, 15, 20]
    assert [row.tokens for row in rows] == [600, 1200, 1800, 2400]
    assert [row.valid_nll_nats is not None for row in rows] == [False, True, False, True]
    assert [row.concept_contribution is not None for row in rows] == [False, True, False, True]
    assert rows[-1].flops > rows[0].flops > 0


def test_events_tell_progress_with_units():
    config = tiny.training(10)
    told: list[Event] = []
    engine = PlainEngine(tiny.lm(), config)
    fit(engine, config, tiny.batch_at, [tiny.batch()], told.append)
    rows = [event for event in told if "flops" in event.metrics]
    assert [(event.step, event.total_steps) for event in rows] == [(5, 10), (10, 10)]
    assert "valid_nll_nats" in rows[1].metrics
    how_it_goes = told[-1].metrics
    assert {
        "tokens_per_second", "flops_per_second", "left_seconds", "goodput", "restarts",
        "gradient_norm", "recent_nll_nats", "recent_concept_loss", "nll_nats_at_rate/0.5",
        "active_known_per_token", "mean_activation/labelled", "mean_activation/unlabelled",
    } <= set(how_it_goes)  # fmt: skip
    shares = [how_it_goes[f"share_{part}"] for part in ("known", "unknown", "residual")]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) > 0.0


class _Poisoned(PlainEngine):
    """Gradients are no number in some steps."""

    def __init__(self, poisoned, config):
        super().__init__(tiny.lm(), config)
        self.poisoned, self.steps = poisoned, 0

    def step(self, lr):
        if self.steps in self.poisoned:
            next(self.lm.parameters()).grad.fill_(float("nan"))
        self.steps += 1
        return super().step(lr)


def test_a_gradient_that_is_no_number_is_skipped_and_counted():
    config = tiny.training(10, patience_non_finite=2)
    engine = _Poisoned({3, 4, 7}, config)
    history = fit(engine, config, tiny.batch_at, [tiny.batch()])
    assert history.n_skipped == 3
    assert all(bool(p.isfinite().all()) for p in engine.finished().parameters())


class _Flawed(PlainEngine):
    """A loss that is no number in one step, on the way to a gradient that would be finite."""

    def __init__(self, step, config):
        super().__init__(tiny.lm(), config)
        self.flawed, self.steps, self.at_rest = step, 0, []

    def sums(self, example):
        found_S = super().sums(example)
        return found_S + float("inf") if self.steps == self.flawed else found_S

    def step(self, lr):
        before = _state(self)
        norm = super().step(lr)
        if self.steps == self.flawed:
            self.at_rest = [torch.equal(a, b) for a, b in zip(before, _state(self), strict=True)]
        self.steps += 1
        return norm


def _state(engine):
    """Copies of weights and of both moments."""
    moments = [
        value.clone() for kept in engine._optimizer.state.values() for value in kept.values()
    ]
    return [parameter.detach().clone() for parameter in engine.lm.parameters()] + moments


def test_a_skipped_step_changes_neither_weights_nor_moments_though_its_gradient_was_finite():
    config = tiny.training(5, validations=1)
    engine = _Flawed(3, config)
    told: list[Event] = []
    history = fit(engine, config, tiny.batch_at, [tiny.batch()], told.append)
    assert history.n_skipped == 1
    assert engine.at_rest
    assert all(engine.at_rest)
    (said,) = [event.message for event in told if event.message]
    assert said.startswith("step 3 was skipped: its loss or gradient was not finite (1 in a row")


def test_too_many_in_a_row_stop_with_advice():
    config = tiny.training(10, patience_non_finite=2)
    with pytest.raises(DivergedError, match=r"3 steps in a row.*lower\s+optim.peak_lr"):
        fit(_Poisoned({2, 3, 4}, config), config, tiny.batch_at, [tiny.batch()])


def test_held_out_batches_are_never_noised_by_the_step():
    first, second = curve(validations=4).rows[0], curve(validations=2).rows[1]
    assert first.valid_nll_nats is not None
    assert second.valid_nll_nats == curve(validations=4).rows[1].valid_nll_nats


def test_dtypes_by_name():
    assert dtype("float32") is torch.float32
    assert dtype("bfloat16") is torch.bfloat16
    assert dtype("auto") in (torch.float32, torch.bfloat16)


def test_a_part_keeps_samples_with_their_tokens():
    part = tiny.batch(5).part(slice(1, None, 2))
    assert isinstance(part, Batch)
    assert part.sample_ids_B.tolist() == [1, 3]
    assert torch.equal(part.ids_BT, tiny.batch(5).ids_BT[1::2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning")  # the compiler's own
def test_compiled_layers_train_the_same():
    plain, compiled = curve(), curve(compiled=True)
    for one, other in zip(plain.rows, compiled.rows, strict=True):
        assert one.nll_nats == pytest.approx(other.nll_nats, rel=1e-5)
