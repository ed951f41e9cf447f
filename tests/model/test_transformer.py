import pytest
import torch

from model.transformer import NO_PAST, Injection
from tests.model import tiny


def moved(network, position):
    """Positions whose hidden state changes when the token at `position` does."""
    before = tiny.ids(1)
    after = before.clone()
    after[0, position] = (after[0, position] + 1) % 32
    difference = (network.hidden(before) - network.hidden(after)).abs().amax(dim=(0, 2))
    return set(torch.nonzero(difference > 1e-6).flatten().tolist())


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_a_later_block_changes_nothing_earlier_and_its_own_block_whole(norm_order):
    network = tiny.lm(norm_order=norm_order)
    assert moved(network, 12) == set(range(10, 20))
    assert moved(network, 3) == set(range(20))


def test_a_later_token_changes_nothing_earlier_in_the_causal_families():
    assert moved(tiny.lm("ar"), 12) == set(range(12, 20))


@pytest.mark.parametrize(("family", "cuts"), [("cdlm", (5, 15)), ("ar", (3, 4, 17))])
def test_states_with_a_past_are_those_of_the_whole(family, cuts):
    network, ids_BT = tiny.lm(family), tiny.ids()
    whole = network.hidden(ids_BT)
    past = NO_PAST
    for start, end in zip((0, *cuts), (*cuts, tiny.LENGTH), strict=True):
        states = network.hidden(ids_BT[:, start:end], past)
        torch.testing.assert_close(states, whole[:, start:end])
        past = network.extend(past, ids_BT[:, start:end])
    assert past.length == tiny.LENGTH


def test_a_past_that_ends_inside_a_block_is_refused():
    network = tiny.lm()
    past = network.extend(NO_PAST, tiny.ids()[:, :3])
    with pytest.raises(ValueError, match="ends inside a block of 5"):
        network.hidden(tiny.ids()[:, 3:6], past)


def test_a_sequence_beyond_the_longest_is_refused():
    with pytest.raises(ValueError, match="21 tokens is longer than max_length 20"):
        tiny.lm().hidden(torch.zeros(1, 21, dtype=torch.int64))


def test_an_injection_enters_from_its_layer_on():
    network, ids_BT = tiny.lm(), tiny.ids()
    plain = network.hidden(ids_BT)
    addition = torch.zeros(3, tiny.LENGTH, tiny.WIDTH)
    unchanged = network.hidden(ids_BT, injection=Injection({0: addition, 1: addition}))
    assert torch.equal(unchanged, plain)
    addition[:, 11] = 1.0
    last = network.hidden(ids_BT, injection=Injection({1: addition}))
    changed = (last - plain).abs().amax(dim=(0, 2)) > 1e-6
    assert torch.nonzero(changed).flatten().tolist() == [11]


@pytest.mark.parametrize(
    ("family", "norm_order", "readout"),
    [("cdlm", "post", [[16, 19], [15, 15], [18, 17]]), ("cdlm", "pre", [[16], [15], [18]]),
     ("ar", "post", [[19], [19], [19]])],
)  # fmt: skip
def test_states_read_off_alone_are_those_of_the_whole(family, norm_order, readout):
    network, readout_BN = tiny.lm(family, norm_order=norm_order), torch.tensor(readout)
    embedded_BTD = network.embedding(tiny.ids())
    addition_BTD = torch.randn(embedded_BTD.shape, generator=torch.Generator().manual_seed(0))
    injection = Injection({0: addition_BTD, 1: 2 * addition_BTD})
    for added in (None, injection):
        whole_BTD, _ = network.backbone(embedded_BTD, NO_PAST, added)
        read_BND = network.backbone.read(embedded_BTD, readout_BN, added)
        rows_B1 = torch.arange(3)[:, None]
        torch.testing.assert_close(read_BND, whole_BTD[rows_B1, readout_BN])


@pytest.mark.parametrize(("family", "start"), [("cdlm", 15), ("ar", 19)])
def test_states_read_off_behind_a_cache_are_those_of_the_whole(family, start):
    network, readout_BN = tiny.lm(family), torch.tensor([[19], [19], [19]])
    ids_BT = tiny.ids()
    addition_BTD = torch.randn(3, start, 1, generator=torch.Generator().manual_seed(0))
    before = Injection({1: addition_BTD})
    past = network.extend(NO_PAST, ids_BT[:, :start], before)
    embedded_BTD = network.embedding(ids_BT[:, start:])
    whole_BTD, _ = network.backbone(embedded_BTD, past)
    read_BND = network.backbone.read(embedded_BTD, readout_BN - start, past=past)
    torch.testing.assert_close(read_BND[:, 0], whole_BTD[:, -1])


def test_a_position_that_does_not_see_the_whole_cannot_be_read_off_alone():
    network = tiny.lm()
    with pytest.raises(ValueError, match="position 14 of 20 does not see all"):
        network.backbone.read(network.embedding(tiny.ids(1)), torch.tensor([[14]]))


def test_a_document_changes_nothing_in_another():
    network, before = tiny.lm(), tiny.ids(1)
    documents_BP = torch.arange(tiny.LENGTH)[None] // 8
    after = before.clone()
    after[0, 12] = (after[0, 12] + 1) % 32
    states = [network.hidden(ids_BT, documents_BP=documents_BP) for ids_BT in (before, after)]
    changed = (states[0] - states[1]).abs().amax(dim=(0, 2)) > 1e-6
    assert torch.nonzero(changed).flatten().tolist() == [10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize(
    "changes", [{"qk_norm": False}, {"rotary": False}, {"clip_qkv": 0.5}, {"clip_qkv": None}]
)
def test_each_option_of_attention_changes_the_states(changes):
    usual = tiny.lm(clip_qkv=1.0).hidden(tiny.ids(1))
    other = tiny.lm(**{"clip_qkv": 1.0, **changes}).hidden(tiny.ids(1))
    assert float((usual - other).abs().max().detach()) > 1e-3


def gradients(*, recomputes, family):
    """Gradients of a loss, and the number of activations kept for them."""
    lm = tiny.lm(family)
    lm.backbone.recomputes = recomputes
    n_kept = 0

    def keep(saved):
        nonlocal n_kept
        n_kept += saved.numel() if saved.grad_fn is not None else 0
        return saved

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        loss = lm(tiny.ids()).square().sum()
    loss.backward()
    return {name: one.grad for name, one in lm.named_parameters()}, n_kept


@pytest.mark.parametrize("family", ["ar", "cdlm"])
def test_layers_computed_again_give_the_same_gradients_and_keep_less(family):
    kept, n_kept = gradients(recomputes=False, family=family)
    again, n_again = gradients(recomputes=True, family=family)
    for name, gradient in kept.items():
        assert torch.equal(again[name], gradient)
    assert n_again < n_kept / 4


def test_nothing_is_computed_again_where_nothing_is_learned():
    lm = tiny.lm()
    lm.backbone.recomputes = True
    with torch.no_grad():
        past = lm.extend(NO_PAST, tiny.ids()[:, : tiny.BLOCK])
    assert past.length == tiny.BLOCK
