"""Log-probabilities of continuations, against sums over orders written out (method §7.3)."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from model.conditional import LogProbability, Request, log_probabilities
from model.conditional_config import ConditionalConfig
from model.language_model import LanguageModel
from tests.model import tiny

FIRST = 7  # in the middle of the second block: 5 tokens a block
MASK = tiny.SPECIALS.mask_id


def request(n_tokens: int, first: int = FIRST, seed: int = 0) -> Request:
    ids_T = tiny.ids(1, seed)[0, : first + n_tokens]
    return Request(ids_T, first, name=41 + seed)


def found(lm: LanguageModel, asked: Request, **changes: object) -> LogProbability:
    (one,) = log_probabilities(lm, [asked], ConditionalConfig.model_validate(changes))
    return one


@torch.no_grad()
def log_p(lm: LanguageModel, ids_T: Tensor, hidden: set[int], at: int) -> float:
    """log p of one token with these positions hidden, by the whole sequence in one pass."""
    noisy_T = ids_T.clone()
    noisy_T[list(hidden)] = MASK
    padding_T = torch.full((-len(ids_T) % tiny.BLOCK,), MASK)
    logits_TV = lm(torch.cat([noisy_T, padding_T])[None])[0]
    return float(logits_TV[at].log_softmax(-1)[ids_T[at]])


def log_p_of_order(lm: LanguageModel, ids_T: Tensor, order: tuple[int, ...]) -> float:
    return sum(log_p(lm, ids_T, set(order[i:]), order[i]) for i in range(len(order)))


def mean_over_orders(lm: LanguageModel, asked: Request) -> float:
    places = range(asked.first, len(asked.ids_T))
    each = [log_p_of_order(lm, asked.ids_T, order) for order in itertools.permutations(places)]
    return sum(each) / len(each)


@pytest.mark.parametrize("n_tokens", [1, 2, 3])
def test_few_tokens_of_a_block_are_averaged_over_every_order(n_tokens: int):
    lm, asked = tiny.lm("cdlm"), request(n_tokens)
    one = found(lm, asked)
    assert one.nats == pytest.approx(mean_over_orders(lm, asked), abs=1e-5)
    assert (one.standard_error_nats, one.n_samples) == (0.0, 0)
    assert one.n_rows == 2**n_tokens - 1


def test_sampled_masks_agree_with_every_order_within_two_standard_errors():
    lm, asked = tiny.lm("cdlm"), request(3)
    each = [found(lm, asked, samples=6, seed=seed) for seed in range(8)]
    assert {(one.n_samples, one.n_rows) for one in each} == {(6, 6)}
    mean = sum(one.nats for one in each) / len(each)
    error = math.sqrt(sum(one.standard_error_nats**2 for one in each)) / len(each)
    assert 0 < abs(mean - mean_over_orders(lm, asked)) <= 2 * error


@pytest.mark.slow
def test_the_sampled_mean_has_no_bias_and_its_error_is_the_one_stated():
    lm, asked = tiny.lm("cdlm"), request(3)
    each = [found(lm, asked, samples=4, seed=seed) for seed in range(400)]
    nats = torch.tensor([one.nats for one in each])
    spread = nats.std() / math.sqrt(len(each))
    assert abs(nats.mean() - mean_over_orders(lm, asked)) <= 3 * spread
    stated = torch.tensor([one.standard_error_nats for one in each]).square().mean().sqrt()
    assert 0.9 * nats.std() <= stated <= 1.2 * nats.std()


@pytest.mark.parametrize("order", ["random", "left_to_right"])
def test_a_uniform_network_pays_the_log_of_the_vocabulary_whatever_is_masked(order: str):
    lm = tiny.lm("cdlm")
    with torch.no_grad():
        lm.embedding.weight.zero_()
    one = found(lm, request(10), order=order)  # three blocks, of which one is sampled
    assert one.nats == pytest.approx(-10 * math.log(tiny.VOCAB))
    assert one.standard_error_nats == pytest.approx(0.0, abs=1e-5)


def test_left_to_right_is_the_chain_rule_within_and_across_blocks():
    lm, asked = tiny.lm("cdlm"), request(6)
    chain = sum(
        log_p(lm, asked.ids_T[: max(at + 1, end)], set(range(at, max(at + 1, end))), at)
        for at in range(FIRST, FIRST + 6)
        for end in [min(len(asked.ids_T), (at // tiny.BLOCK + 1) * tiny.BLOCK)]
    )
    one = found(lm, asked, order="left_to_right")
    assert one.nats == pytest.approx(chain, abs=1e-4)
    assert (one.standard_error_nats, one.n_rows) == (0.0, 6)


def test_a_context_that_is_masked_would_give_another_number():
    lm, asked = tiny.lm("cdlm"), request(1)
    with_context = log_p(lm, asked.ids_T, {FIRST}, FIRST)
    without = log_p(lm, asked.ids_T, {FIRST, FIRST - 1, 2}, FIRST)
    assert found(lm, asked).nats == pytest.approx(with_context, abs=1e-5)
    assert abs(with_context - without) > 0.01


@pytest.mark.parametrize("family", ["ar", "ar_concept"])
def test_left_to_right_families_give_plain_log_probabilities(family: str):
    lm = tiny.lm(family)  # type: ignore[arg-type]
    asked = [request(3), request(9, first=1), request(1, first=12)]
    for one, found_ in zip(asked, log_probabilities(lm, asked, ConditionalConfig()), strict=True):
        log_TV = lm(one.ids_T[None])[0].log_softmax(-1).detach()
        target_N = one.ids_T[one.first :]
        plain = log_TV[one.first - 1 : -1].gather(1, target_N[:, None]).sum()
        assert found_.nats == pytest.approx(float(plain), abs=1e-4)
        assert (found_.standard_error_nats, found_.n_rows) == (0.0, 1)


@pytest.mark.parametrize("family", ["cdlm_concept", "ar"])
def test_neither_the_batch_nor_its_size_changes_a_number(family: str):
    lm = tiny.lm(family)  # type: ignore[arg-type]
    asked = [request(n, first, seed) for n, first, seed in [(9, 3, 0), (2, 11, 1), (9, 3, 2)]]
    asked.append(Request(torch.cat([asked[0].ids_T[:11], asked[1].ids_T[11:]]), 11, name=9))
    together = log_probabilities(lm, asked, ConditionalConfig(rows=64))
    small = log_probabilities(lm, asked, ConditionalConfig(rows=3))
    alone = [found(lm, one) for one in asked]
    for a, b, c in zip(together, small, alone, strict=True):
        assert a.nats == pytest.approx(b.nats, abs=1e-4)
        assert a.nats == pytest.approx(c.nats, abs=1e-4)


def test_another_seed_draws_other_masks():
    lm, asked = tiny.lm("cdlm"), request(5, first=5)
    assert found(lm, asked).nats == found(lm, asked).nats
    assert found(lm, asked, seed=1).nats != found(lm, asked).nats


def test_a_request_that_is_too_long_or_has_no_context_is_refused():
    with pytest.raises(ValueError, match="22 tokens, more than max_length 20; cut the context"):
        log_probabilities(
            tiny.lm("ar"), [Request(torch.zeros(22, dtype=torch.int64), 3, 0)], ConditionalConfig()
        )
    with pytest.raises(ValueError, match="begins at position 0 of 2 tokens"):
        Request(torch.tensor([1, 2]), 0, 0)
