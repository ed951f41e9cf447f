import math

import pytest
import torch

from model.attention import KeysValues, RMSNorm, attend, positions, rotate
from tests.model import tiny


def test_the_mask_by_hand():
    backbone = tiny.config().backbone.model_copy(update={"block": 2})
    mask_TP = positions(backbone, 0, 5, torch.device("cpu")).mask_TP
    assert mask_TP is not None
    assert mask_TP.int().tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]


def test_the_mask_after_a_past_is_the_lower_part_of_the_whole():
    backbone = tiny.config().backbone
    whole = positions(backbone, 0, 15, torch.device("cpu")).mask_TP
    later = positions(backbone, 10, 5, torch.device("cpu")).mask_TP
    assert whole is not None
    assert later is not None
    assert torch.equal(later, whole[10:])


def test_rotation_turns_pairs_of_half_split_channels_by_hand():
    backbone = tiny.config().backbone.model_copy(update={"width": 16, "n_heads": 4})
    at = positions(backbone, 1, 1, torch.device("cpu"))
    turned = rotate(torch.tensor([1.0, 1.0, 0.0, 0.0]).view(1, 1, 1, 4), at).flatten()
    slow = 500_000.0**-0.5
    expected = [math.cos(1.0), math.cos(slow), math.sin(1.0), math.sin(slow)]
    torch.testing.assert_close(turned, torch.tensor(expected))


def test_rotated_products_depend_on_distance_alone():
    backbone = tiny.config().backbone
    query, key = torch.randn(2, 1, 1, 1, 4)

    def product(at_query: int, at_key: int) -> float:
        one, other = (
            rotate(states, positions(backbone, at, 1, torch.device("cpu")))
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


def test_both_routes_of_attention_agree():
    query_BHTC = torch.randn(2, 6, 5, 4, dtype=torch.bfloat16)
    seen = KeysValues(*torch.randn(2, 2, 3, 7, 4, dtype=torch.bfloat16))
    mask_TP = torch.ones(5, 7, dtype=torch.bool).tril(2)
    wide = KeysValues(seen.keys_BGPC.float(), seen.values_BGPC.float())
    exact = attend(query_BHTC.float(), wide, mask_TP)
    torch.testing.assert_close(
        attend(query_BHTC, seen, mask_TP).float(), exact, atol=0.03, rtol=0.03
    )
