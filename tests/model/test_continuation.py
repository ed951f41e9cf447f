"""How a continuation is read: every token once, the rest in view, the concept by noisy OR."""

import pytest
import torch

from model.continuation import read
from tests.model.explained import MASK, loud_network, some_prompts


@torch.no_grad()
def test_causal_loss_and_presence_by_hand() -> None:
    lm = loud_network("causal")
    ids_BT = some_prompts(2, 9)
    continued_BT = torch.arange(9).expand(2, -1) >= 6
    found = read(lm, ids_BT, continued_BT, torch.tensor([3, 5]), seed=0)
    hidden_BTD = lm.hidden(ids_BT)
    logp_BTV = lm.unembed(hidden_BTD).log_softmax(-1)
    for row, concept in enumerate((3, 5)):
        nats = [-logp_BTV[row, t - 1, ids_BT[row, t]] for t in (6, 7, 8)]
        torch.testing.assert_close(found.nats_B[row], torch.stack(nats).mean())
        k_3 = lm.concepts.known.logits(hidden_BTD[row, 5:8])[:, concept].sigmoid()
        torch.testing.assert_close(found.presence_B[row], 1 - (1 - k_3).prod())


@torch.no_grad()
def test_each_token_of_a_continuation_is_masked_and_asked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm, seen = loud_network(), []
    hidden = lm.hidden

    def watched(ids_BT: torch.Tensor) -> torch.Tensor:
        seen.append(ids_BT[0] == MASK)
        return hidden(ids_BT)

    monkeypatch.setattr(lm, "hidden", watched)
    continued_BT = torch.arange(16)[None] >= 5
    read(lm, some_prompts(1, 16), continued_BT, torch.tensor([0]), seed=1)
    one_T, other_T = seen
    assert (one_T ^ other_T).tolist() == continued_BT[0].tolist()
    assert one_T.any()
    assert other_T.any()


def test_a_text_the_network_would_write_is_cheaper_than_one_it_would_not() -> None:
    lm = loud_network("causal")
    likely_BT = some_prompts(1, 4)
    with torch.no_grad():
        for _ in range(5):
            next_B1 = lm(likely_BT)[:, -1:].argmax(-1)
            likely_BT = torch.cat([likely_BT, next_B1], dim=1)
    continued_BT = torch.arange(9)[None] >= 4
    ids_BT = torch.cat([likely_BT, torch.cat([likely_BT[:, :4], some_prompts(1, 5, seed=9)], 1)])
    found = read(lm, ids_BT, continued_BT.expand(2, -1), torch.tensor([0, 0]), seed=0)
    assert found.nats_B[0] < found.nats_B[1]


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_the_prompt_is_never_asked_for(attention: str) -> None:
    lm = loud_network(attention)
    ids_BT = some_prompts(2, 12)
    changed_BT = ids_BT.clone()
    continued_BT = torch.zeros(2, 12, dtype=torch.bool)
    continued_BT[:, 8:] = True
    changed_BT[1, 0] = 9 if ids_BT[1, 0] != 9 else 10
    before = read(lm, ids_BT, continued_BT, torch.tensor([1, 1]), seed=2)
    after = read(lm, changed_BT, continued_BT, torch.tensor([1, 1]), seed=2)
    assert before.nats_B[0] == after.nats_B[0]
    assert before.nats_B[1] != after.nats_B[1]  # it is seen


def test_a_row_is_read_by_its_name_whatever_stands_beside_it() -> None:
    lm, ids_BT = loud_network(), some_prompts(3, 16)
    continued_BT, concept_B = torch.arange(16).expand(3, -1) >= 5, torch.tensor([0, 1, 2])
    together = read(lm, ids_BT, continued_BT, concept_B, 1, [7, 8, 9])
    alone = read(lm, ids_BT[2:], continued_BT[2:], concept_B[2:], 1, [9])
    torch.testing.assert_close(together.nats_B[2:], alone.nats_B)
    torch.testing.assert_close(together.presence_B[2:], alone.presence_B)
