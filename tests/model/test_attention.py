import math

import pytest
import torch

import model.positions as positions_module
from model import flex
from model.attention import KeysValues, RMSNorm, attend, rotate
from model.positions import Masks, Sight, masks, positions
from tests.model import tiny

CPU = torch.device("cpu")


def test_rotation_turns_pairs_of_half_split_channels_by_hand():
    backbone = tiny.config().backbone.model_copy(update={"width": 16, "n_heads": 4})
    at = positions(backbone, 1, 1, CPU)
    turned = rotate(torch.tensor([1.0, 1.0, 0.0, 0.0]).view(1, 1, 1, 4), at).flatten()
    slow = 500_000.0**-0.5
    expected = [math.cos(1.0), math.cos(slow), math.sin(1.0), math.sin(slow)]
    torch.testing.assert_close(turned, torch.tensor(expected))


def test_rotated_products_depend_on_distance_alone():
    backbone = tiny.config().backbone
    query, key = torch.randn(2, 1, 1, 1, 4)

    def product(at_query: int, at_key: int) -> float:
        one, other = (
            rotate(states, positions(backbone, at, 1, CPU))
            for states, at in ((query, at_query), (key, at_key))
        )
        return float((one * other).sum())

    assert product(9, 4) == pytest.approx(product(15, 10), abs=1e-5)


def test_norm_by_hand():
    norm = RMSNorm(2, eps=0.0)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0]))
    scale = math.sqrt(12.5)
    expected = torch.tensor([3.0 / scale, 8.0 / scale])
    torch.testing.assert_close(norm(torch.tensor([3.0, 4.0])), expected)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("n_past", [0, 6])
@pytest.mark.parametrize("with_documents", [False, True])
@pytest.mark.parametrize("block", [3, None])
def test_every_route_gives_what_the_dense_mask_gives(monkeypatch, block, with_documents, n_past):
    monkeypatch.setattr(positions_module, "TILE", 5)
    n_keys = n_past + 11
    documents_BP = torch.arange(n_keys)[None].expand(2, -1) // 7 if with_documents else None
    sight = Sight(block, n_past, 11, documents_BP)
    draw = torch.Generator().manual_seed(0)
    query_BHTC = torch.randn(2, 6, 11, 4, generator=draw)
    seen = KeysValues(*torch.randn(2, 2, 3, n_keys, 4, generator=draw))
    expected = dense(query_BHTC, seen, sight)
    by_tiles = masks(sight, CPU)
    torch.testing.assert_close(attend(query_BHTC, seen, by_tiles), expected)
    by_flex = Masks(blocks=flex.blocks(sight, CPU))
    torch.testing.assert_close(attend(query_BHTC, seen, by_flex), expected)
    low = KeysValues(seen.keys_BGPC.bfloat16(), seen.values_BGPC.bfloat16())
    rough = attend(query_BHTC.bfloat16(), low, by_tiles).float()
    torch.testing.assert_close(rough, expected, atol=0.03, rtol=0.03)


def dense(query_BHTC, seen, sight):
    """One product under one whole mask."""
    n_keys = sight.n_past + sight.n_now
    at_T, key_P = torch.arange(sight.n_past, n_keys)[:, None], torch.arange(n_keys)
    width = sight.block or 1
    allowed = at_T // width >= key_P // width
    if sight.documents_BP is not None:
        now_BT1 = sight.documents_BP[:, sight.n_past :, None]
        allowed = ((now_BT1 == sight.documents_BP[:, None]) & allowed)[:, None]
    keys, values = (part.repeat_interleave(2, dim=1) for part in (seen.keys_BGPC, seen.values_BGPC))
    scores = query_BHTC @ keys.transpose(-1, -2) / query_BHTC.shape[-1] ** 0.5
    return scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ values
