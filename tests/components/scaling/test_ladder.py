"""A ladder has every point once, and every point spends its budget."""

import pytest
from pydantic import ValidationError

from components.scaling.config import LadderConfig, PointTraining, Size
from components.scaling.ladder import Settled, plan, settle
from model import accounting
from model.tokenizer import SpecialIds
from model.train_config import OptimConfig

SPECIALS = SpecialIds(0, 1, 2, 3, 4, 5, 6, 7)
TRAINING = PointTraining(
    length=32, block=8, batch_sequences=4, optim=OptimConfig(peak_lr=1e-3), rank=3
)
SIZES = tuple(
    Size(width=width, n_layers=2, n_heads=2, n_kv_heads=1, mlp_width=3 * width)
    for width in (8, 16, 24)
)


def ladder(**changes: object) -> LadderConfig:
    return LadderConfig.model_validate(
        {
            "families": ("ar", "cdlm_concept"), "budgets_flops": (3e9, 9e9), "sizes": SIZES,
            "training": TRAINING,
        }
        | changes
    )  # fmt: skip


def settled(name: str) -> Settled:
    (point,) = [point for point in plan(ladder()) if point.name == name]
    return settle(point, vocab_size=300, n_known=20, specials=SPECIALS)


def test_every_point_is_planned_once():
    points = plan(ladder(seeds=(0, 1)))
    assert len({point.name for point in points}) == 2 * 2 * 3 * 2


def test_every_point_spends_its_budget():
    for point in plan(ladder()):
        found = settle(point, vocab_size=300, n_known=20, specials=SPECIALS)
        per_token = accounting.training_flops_per_token(found.network, 32)
        assert found.flops == pytest.approx(per_token * found.n_tokens)
        assert abs(found.flops / point.budget_flops - 1) <= 0.15
        assert found.n_tokens == found.n_steps * 4 * 32


def test_concepts_cost_tokens():
    assert settled("cdlm_concept-3e09-w8x2-s0").n_tokens < settled("ar-3e09-w8x2-s0").n_tokens


def test_parameters_of_the_laws_leave_out_embeddings():
    found = settled("cdlm_concept-3e09-w16x2-s0")
    counted = accounting.parameters(found.network)
    unknown_embeddings = 3 * (60 + 16)
    assert found.n_parameters == counted.total - 300 * 16 - unknown_embeddings


def test_a_budget_that_one_step_overshoots_is_refused():
    (point,) = plan(ladder(families=("cdlm",), budgets_flops=(2e6,), sizes=SIZES[:1]))
    with pytest.raises(ValueError, match=r"limit 15%\); lower batch_sequences"):
        settle(point, vocab_size=300, n_known=20, specials=SPECIALS)


def test_a_point_named_twice_is_refused():
    with pytest.raises(ValidationError, match=r"budgets_flops names 3000000000\.0 twice"):
        ladder(budgets_flops=(3e9, 3e9))


def test_families_with_concepts_have_budgets_of_their_own():
    points = plan(ladder(concept_budgets_flops=(12e9,)))
    assert {p.budget_flops for p in points if p.family == "ar"} == {3e9, 9e9}
    assert {p.budget_flops for p in points if p.family == "cdlm_concept"} == {12e9}


def test_a_budget_takes_the_sizes_nearest_to_twenty_tokens_a_parameter():
    # sqrt(budget / 120): 2,887 and 8,660 parameters; the sizes have 1,536, 6,144 and 13,824
    points = plan(ladder(families=("ar",), budgets_flops=(1e9, 9e9), sizes_per_budget=2))
    assert [(point.budget_flops, point.size.width) for point in points] == [
        (1e9, 8), (1e9, 16), (9e9, 16), (9e9, 24),
    ]  # fmt: skip


def test_a_size_has_a_library_and_a_rank_of_its_own():
    size = SIZES[0].model_copy(update={"n_known": 6, "rank": 2})
    (point,) = plan(ladder(families=("cdlm_concept",), budgets_flops=(9e9,), sizes=(size,)))
    found = settle(point, vocab_size=300, n_known=20, specials=SPECIALS).network.bottleneck
    assert (found.n_known, found.n_unknown, found.rank) == (6, 18, 2)
    assert (
        settle(point, vocab_size=300, n_known=4, specials=SPECIALS).network.bottleneck.n_known == 4
    )
