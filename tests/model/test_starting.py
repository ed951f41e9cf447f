"""Weights one at a time are the weights of the whole, also where no rank ever holds the whole."""

import pytest
import torch

from model import checkpoint, starting
from model.language_model import LanguageModel
from model.starting import Start, fresh
from model.zero_config import ZeroConfig
from tests.components import interrupted
from tests.model import tiny

PREVALENCE = (0.1, 0.2, 0.3, 0.1, 0.5, 0.2, 0.4)


def same(one, other):
    pairs = zip(one.named_parameters(), other.named_parameters(), strict=True)
    return all(a == b and torch.equal(first, second) for (a, first), (b, second) in pairs)


@pytest.mark.parametrize(
    ("family", "changes"),
    [("ar", {"tied": False}), ("cdlm_concept", {}), ("ar_concept", {"rank": None})],
)
def test_fresh_weights_one_at_a_time_are_those_of_the_seed(family, changes):
    config = tiny.config(family, **changes)
    assert same(fresh(config, 3).whole(), LanguageModel(config, 3))
    assert not same(fresh(config, 4).whole(), LanguageModel(config, 3))


def test_biases_start_at_the_prevalences():
    config = tiny.config()
    wanted = LanguageModel(config, 3)
    wanted.concepts.known.start_at(torch.tensor(PREVALENCE), 11.0)
    assert same(fresh(config, 3, PREVALENCE, 11.0).whole(), wanted)


def test_a_bare_network_has_names_and_shapes_and_no_memory():
    shapes = starting.bare(tiny.config()).named_parameters()
    for (name, shape), (wanted, whole) in zip(shapes, tiny.lm().named_parameters(), strict=True):
        assert (name, shape.shape, shape.is_meta) == (wanted, whole.shape, True)


def _watched(start, lms):
    """The same weights; whenever one is asked for, no earlier one lies whole on this rank."""

    def bare():
        lms.append(starting.bare(start.config))
        return lms[-1]

    def weights():
        for name, values in start.weights():
            earlier = [one for one in lms[-1].parameters() if not one.is_meta]
            assert sum(one.numel() for one in earlier) == 0
            yield name, values

    watched = Start(start.config, weights)
    object.__setattr__(watched, "bare", bare)
    return watched


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("source", ["seed", "checkpoint"])
def test_at_stage_3_no_rank_holds_the_whole_and_the_weights_are_the_same(tmp_path, dtype, source):
    config = tiny.config()
    start = fresh(config, 3, PREVALENCE, 11.0)
    checkpoint.save(start.whole(), tmp_path)
    if source == "checkpoint":
        start = checkpoint.opened(tmp_path)

    def work(rank):
        from model.zero import ZeroEngine

        training = tiny.training(dtype=dtype)
        zero = ZeroConfig(stage=3, whole_elements=0)
        seen = []
        split = ZeroEngine.started(_watched(start, seen), training, zero)
        assert split.lm is seen[0]
        share = sum(one.ds_tensor.numel() for one in split.lm.parameters())
        total = sum(one.numel() for one in starting.bare(config).parameters())
        assert total / 2 <= share <= total / 2 + len(list(split.lm.parameters()))
        groups = [len(group["params"]) for group in split._optimizer.param_groups]
        at_once = ZeroEngine(start.whole(), training, zero)
        assert groups == [len(group["params"]) for group in at_once._optimizer.param_groups]
        found, wanted = split.finished(), at_once.finished()
        if rank == 0:
            assert same(found, wanted)
            checkpoint.save(found, tmp_path / dtype)

    (tmp_path / dtype).mkdir()
    assert interrupted.ranks(2, work, 0, None) == [0, 0]
    if dtype == "float32":
        assert same(checkpoint.load(tmp_path / dtype), checkpoint.load(tmp_path))
