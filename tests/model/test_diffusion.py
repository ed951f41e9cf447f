import pytest
import torch

from model.diffusion import Batch, corrupt, fixed, next_tokens, question, uniform_between
from model.draws import Purpose, uniforms
from tests.model import tiny

CONFIG = tiny.config()


def noisy(batch=None, rates=None, **options):
    """Noise of one step; `sizes` large enough for shares to be near what was asked."""
    return corrupt(batch or tiny.batch(400), rates or fixed(0.5), 0, 7, CONFIG, **options)


def test_draws_depend_on_the_address_alone():
    samples_B = torch.tensor([5, 3, 9])
    whole = uniforms(samples_B, 4, seed=1, step=2, purpose=Purpose.MASK)
    alone = uniforms(samples_B[1:2], 4, seed=1, step=2, purpose=Purpose.MASK)
    assert torch.equal(whole[1:2], alone)
    for other in ({"seed": 2}, {"step": 3}, {"purpose": Purpose.RATE}):
        address = {"seed": 1, "step": 2, "purpose": Purpose.MASK, **other}
        assert not torch.equal(uniforms(samples_B, 4, **address), whole)


def test_the_largest_seeds_draw_numbers_of_their_own():
    sample_B = torch.tensor([5])
    first, second = (
        uniforms(sample_B, 4, seed=seed, step=2, purpose=Purpose.TOKEN)
        for seed in (2**63, 2**63 + 1)
    )
    assert not torch.equal(first, second)


def test_how_a_batch_is_split_changes_no_mask():
    batch = tiny.batch(6)
    whole = noisy(batch, uniform_between(0.05, 0.95))
    halves = [noisy(batch.part(slice(i, None, 2)), uniform_between(0.05, 0.95)) for i in range(2)]
    for i in range(2):
        assert torch.equal(whole.masked_BT[i::2], halves[i].masked_BT)


def test_bos_and_padding_are_never_masked_and_ends_are():
    asked = noisy(rates=fixed(1.0))
    ids_BT = tiny.batch(400).ids_BT
    kept = (ids_BT == CONFIG.bos_id) | (ids_BT == CONFIG.pad_id)
    assert torch.equal(asked.masked_BT, ~kept)
    assert bool(asked.masked_BT[ids_BT == CONFIG.end_of_chunk_id].all())


def test_masked_tokens_are_replaced_and_asked_for_in_place():
    batch = tiny.batch(400)
    asked = noisy(batch)
    assert bool((asked.noisy_BT[asked.masked_BT] == CONFIG.mask_id).all())
    assert torch.equal(asked.noisy_BT[~asked.masked_BT], batch.ids_BT[~asked.masked_BT])
    assert torch.equal(asked.target_BT, batch.ids_BT)


def test_every_sequence_is_asked_for_something():
    assert bool((noisy(rates=fixed(1e-9)).masked_BT.sum(dim=1) == 1).all())


def test_a_sequence_of_padding_is_asked_for_nothing():
    padding = torch.full((1, tiny.LENGTH), CONFIG.pad_id)
    batch = Batch(
        padding, padding * 0 - 1, torch.zeros(0, 5), torch.zeros(0), torch.zeros(1, dtype=int)
    )
    assert not bool(noisy(batch).masked_BT.any())


def test_blocks_draw_rates_of_their_own_and_sequences_one():
    per_block = noisy(rates=uniform_between(0.05, 0.95)).rate_BT
    assert int(torch.unique(per_block[0]).numel()) == 4
    assert torch.equal(per_block[:, 0], per_block[:, 4])
    one = noisy(rates=uniform_between(0.05, 0.95), per="sequence").rate_BT
    assert int(torch.unique(one[0]).numel()) == 1


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_a_rate_is_the_share_masked(rate):
    asked = noisy(rates=fixed(rate))
    possible = tiny.batch(400).ids_BT[:, 1:19].numel()
    assert float(asked.masked_BT.sum()) / possible == pytest.approx(rate, abs=0.02)


def test_a_clean_prefix_leaves_first_blocks_whole_but_never_all():
    asked = noisy(rates=fixed(1.0), clean_prefix=1.0)
    per_block = asked.masked_BT.view(-1, 4, 5).any(dim=2)
    assert not bool(per_block[:, 0].any())
    assert bool(per_block[:, 3].all())
    assert bool((per_block.int().diff(dim=1) >= 0).all()), "a masked block before a whole one"
    some = noisy(rates=fixed(1.0), clean_prefix=0.2).masked_BT[:, 1:5].any(dim=1)
    assert float(some.float().mean()) == pytest.approx(0.8, abs=0.06)


def test_the_ar_question_by_hand():
    ids_BT = torch.tensor([[34, 5, 6, 32, 34, 7, 33]])  # BOS 5 6 EOS BOS 7 PAD
    batch = Batch(ids_BT, ids_BT, ids_BT, ids_BT, ids_BT[:, 0])
    asked = next_tokens(batch, tiny.config("ar"))
    assert asked.target_BT.tolist() == [[5, 6, 32, 34, 7, 33, 33]]
    assert asked.masked_BT.int().tolist() == [[1, 1, 1, 0, 1, 0, 0]]
    assert torch.equal(asked.noisy_BT, ids_BT)


def test_a_family_is_asked_its_own_question():
    batch = tiny.batch()
    assert torch.equal(
        question(batch, fixed(0.5), 0, 0, tiny.config("ar_concept")).noisy_BT, batch.ids_BT
    )
    assert bool((question(batch, fixed(0.5), 0, 0, CONFIG).noisy_BT == CONFIG.mask_id).any())
