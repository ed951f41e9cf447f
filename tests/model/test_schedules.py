import pytest
import torch

from model import schedules
from model.train_config import AlphaConfig, NoiseConfig, ObjectiveConfig, OptimConfig


def test_warm_up_stable_decay_by_hand():
    config = OptimConfig(peak_lr=1.0, warmup=0.2, decay=0.4)
    rates = [schedules.learning_rate(config, step, 10) for step in range(10)]
    expected = [1 / 3, 2 / 3, 1, 1, 1, 1, 1, 0.5, 1 - 0.5**0.5, 1 - 0.75**0.5]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(("shape", "half_way"), [("linear", 0.5), ("cosine", 0.5)])
def test_a_decay_over_the_whole_run_is_half_way_at_half(shape, half_way):
    config = OptimConfig(peak_lr=2.0, warmup=0.0, decay=1.0, decay_shape=shape)
    assert schedules.learning_rate(config, 0, 8) == 2.0
    assert schedules.learning_rate(config, 4, 8) == pytest.approx(2.0 * half_way)
    assert schedules.learning_rate(config, 7, 8) > 0.0


def test_a_decay_ends_at_its_floor():
    config = OptimConfig(peak_lr=2.0, warmup=0.0, decay=1.0, decay_shape="cosine", floor=0.1)
    assert schedules.learning_rate(config, 4, 8) == pytest.approx(2.0 * (0.1 + 0.9 * 0.5))
    assert schedules.learning_rate(config, 10**6 - 1, 10**6) == pytest.approx(2.0 * 0.1)


def test_a_run_without_phases_is_flat():
    config = OptimConfig(peak_lr=1.0, warmup=0.0, decay=0.0)
    assert {schedules.learning_rate(config, step, 5) for step in range(5)} == {1.0}


def test_known_forcing_holds_falls_by_a_cosine_and_holds_its_floor():
    config = ObjectiveConfig().alpha_known
    values = [schedules.alpha(config, at) for at in (0.0, 0.15, 0.325, 0.5, 1.0)]
    assert values == pytest.approx([1.0, 1.0, 0.75, 0.5, 0.5])


def test_unknown_forcing_falls_linearly_to_the_end():
    config = ObjectiveConfig().alpha_unknown
    values = [schedules.alpha(config, at) for at in (0.25, 0.625, 1.0)]
    assert values == pytest.approx([1.0, 0.75, 0.5])


def test_forcing_from_half_to_none_is_the_schedule_of_mid_training():
    config = AlphaConfig(first=0.5, last=0.0)
    values = [schedules.alpha(config, at) for at in (0.0, 0.5, 1.0)]
    assert values == pytest.approx([0.5, 0.25, 0.0])


def test_uniform_noise_fills_its_range():
    rates = schedules.noise(NoiseConfig(low=0.2, high=0.6), 0.3)(torch.linspace(0, 1, 5))
    torch.testing.assert_close(rates, torch.tensor([0.2, 0.3, 0.4, 0.5, 0.6]))


@pytest.mark.parametrize(("progress", "centre"), [(0.0, 0.2), (0.5, 0.5), (1.0, 0.8)])
def test_the_gaussian_moves_and_stays_in_range(progress, centre):
    rates = schedules.noise(NoiseConfig(kind="moving_gaussian"), progress)
    quantiles = rates(torch.tensor([1e-9, 0.5, 0.6, 1 - 1e-9]))
    assert float(quantiles[1]) == pytest.approx(centre)
    assert (float(quantiles[0]), float(quantiles[3])) == pytest.approx((0.05, 0.95))
    if progress == 0.5:
        assert float(quantiles[2]) == pytest.approx(0.5 + 0.3 * 0.2533, abs=1e-3)


@pytest.mark.parametrize("progress", [0.0, 0.9])
def test_heavy_noise_gathers_at_four_fifths_throughout(progress):
    rates = schedules.noise(NoiseConfig(kind="heavy"), progress)
    below, middle, above, end = rates(torch.tensor([0.1587, 0.5, 0.8413, 1.0])).tolist()
    assert (below, middle, above) == pytest.approx((0.7, 0.8, 0.9), abs=1e-3)
    assert end == pytest.approx(0.95)
