import pytest
import torch

from model import flex
from model.positions import Sight, documents, positions
from tests.model import tiny

CPU = torch.device("cpu")


def whole(sight: Sight) -> torch.Tensor:
    mask = sight.between(0, sight.n_now, CPU).mask
    assert mask is not None
    return mask


def test_the_mask_by_hand():
    assert whole(Sight(2, 0, 5, None)).int().tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]


def test_the_mask_after_a_past_is_the_lower_part_of_the_whole():
    last = Sight(5, 8, 7, None)
    assert torch.equal(whole(last), whole(Sight(5, 0, 15, None))[8:])


def test_a_tile_that_sees_all_its_keys_needs_no_mask():
    assert Sight(5, 10, 5, None).between(0, 5, CPU).mask is None


@pytest.mark.parametrize("block", [3, None])
def test_tiles_are_rows_of_the_whole_mask_cut_where_nothing_is_seen(block):
    sight = Sight(block, 0, 11, None)
    for start, end in ((0, 3), (3, 9), (9, 11)):
        rows = whole(sight)[start:end]
        tile = sight.between(start, end, CPU)
        n_keys, mask = tile.n_keys, tile.mask
        assert not rows[:, n_keys:].any()
        assert rows[:, :n_keys].all() if mask is None else torch.equal(mask, rows[:, :n_keys])


def test_a_document_begins_at_its_bos_and_sees_itself_alone():
    ids_BT = torch.tensor([[9, 1, 2, 9, 3], [4, 5, 9, 6, 7]])
    documents_BT = documents(ids_BT, bos_id=9)
    assert documents_BT.tolist() == [[1, 1, 1, 2, 2], [0, 0, 1, 1, 1]]
    mask = whole(Sight(5, 0, 5, documents_BT))
    assert mask[0, 0].int().tolist() == [[1, 1, 1, 0, 0]] * 3 + [[0, 0, 0, 1, 1]] * 2
    assert mask[1, 0].int().tolist() == [[1, 1, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 1]] * 3


@pytest.mark.parametrize("with_documents", [False, True])
def test_the_tiles_of_flex_attention_hold_the_same_mask(with_documents):
    documents_BT = torch.arange(10)[None].expand(2, -1) // 4 if with_documents else None
    sight = Sight(3, 0, 10, documents_BT)
    rule = flex.blocks(sight, CPU).mask_mod
    row, query, key = torch.meshgrid(*(torch.arange(n) for n in (2, 10, 10)), indexing="ij")
    expected = whole(sight).reshape(-1, 10, 10).expand(2, -1, -1)
    assert torch.equal(rule(row, torch.zeros_like(row), query, key), expected)


def test_tables_are_made_once_for_a_shape_and_may_be_trained_on_later():
    backbone = tiny.config().backbone.model_copy(update={"rope_base": 77.0})
    with torch.inference_mode():
        first = positions(backbone, 0, 6, CPU)
    again = positions(backbone, 0, 6, CPU)
    assert first.cos_TC is again.cos_TC
    assert not again.cos_TC.is_inference()
