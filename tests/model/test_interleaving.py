"""Steering phases of mid-training (method §4.5)."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from model import interleaving, schedules
from model.diffusion import corrupt, fixed
from model.interleaving import Lifted, aim, express, injection, respond
from model.train_config import InterleavingConfig
from tests.model import tiny

CONFIG = InterleavingConfig(gain=1.5)


def lifted(batch):
    """Each concept's words: the tokens 4 k … 4 k + 3, less one that concept 2 lacks."""
    words_KW = torch.arange(tiny.KNOWN * 4).view(tiny.KNOWN, 4)
    words_KW[2, 3] = -1
    return Lifted(words_KW, torch.ones(tiny.KNOWN))


def aimed(batch=None, step=0, **changes):
    batch = tiny.batch(9) if batch is None else batch
    asked = corrupt(batch, fixed(0.6), 0, step, tiny.config())
    known = replace(lifted(batch), **changes)
    return batch, asked, aim(batch, asked, known, CONFIG, n_layers=2, seed=0, step=step)


def test_only_masked_words_of_a_label_of_their_own_chunk_are_aimed_at():
    batch, asked, found = aimed()
    assert len(found) > 3
    assert not (found.aimed_BT & ~asked.masked_BT).any()
    chunk_N = batch.chunk_BT[found.aimed_BT]
    assert batch.labelled_C[chunk_N].all()
    assert (batch.concepts_CM[chunk_N] == found.concept_N[:, None]).any(1).all()
    assert (found.words_NW == batch.ids_BT[found.aimed_BT][:, None]).any(1).all()


def test_a_chunk_draws_one_concept():
    batch, _, found = aimed()
    chunk_N = batch.chunk_BT[found.aimed_BT]
    for chunk in chunk_N.unique():
        assert len(found.concept_N[chunk_N == chunk].unique()) == 1


def test_every_masked_word_of_the_drawn_concept_is_aimed_at():
    batch, asked, found = aimed()
    chunk_N = batch.chunk_BT[found.aimed_BT]
    drawn = {int(c): int(k) for c, k in zip(chunk_N, found.concept_N, strict=True)}
    table = lifted(batch).words_KW
    for chunk, concept in drawn.items():
        word_BT = torch.isin(batch.ids_BT, table[concept][table[concept] >= 0])
        wanted_BT = word_BT & asked.masked_BT & (batch.chunk_BT == chunk)
        assert torch.equal(found.aimed_BT & (batch.chunk_BT == chunk), wanted_BT)


def test_a_concept_without_odds_is_never_drawn():
    present = tiny.batch(4).concepts_CM
    favoured = int(present[present >= 0][0])
    odds_K = torch.zeros(tiny.KNOWN)
    odds_K[favoured] = 0.3
    for step in range(4):
        assert set(aimed(step=step, odds_K=odds_K)[2].concept_N.tolist()) <= {favoured}


def test_draws_follow_the_odds():
    batch = tiny.batch(300)
    two_C = (batch.concepts_CM >= 0).sum(1) == 2
    pair_C2 = batch.concepts_CM[two_C & batch.labelled_C]
    odds_K = torch.arange(1.0, tiny.KNOWN + 1)
    drawn_C = interleaving._drawn(batch, replace(lifted(batch), odds_K=odds_K), seed=0, step=0)
    drawn_C = drawn_C[two_C & batch.labelled_C]
    first_C2 = odds_K[pair_C2[:, :2]]
    expected_C = first_C2[:, 0] / first_C2.sum(1)
    hits_C = (drawn_C == pair_C2[:, 0]).float()
    spread = float((expected_C * (1 - expected_C)).sum().sqrt())
    assert abs(float((hits_C - expected_C).sum())) < 3 * spread


def test_a_batch_in_parts_aims_as_the_whole():
    batch, _, whole = aimed()
    for row in range(9):
        part = batch.part(slice(row, row + 1))
        _, _, found = aimed(part)
        assert torch.equal(found.aimed_BT[0], whole.aimed_BT[row])


def test_what_is_injected_is_the_unit_direction_times_the_gain_and_moves_no_concept():
    network = tiny.lm()
    _, _, found = aimed()
    added = injection(network, found)
    (layer,) = added.by_layer
    assert layer == 1
    addition_BTD = added.by_layer[layer]
    assert not addition_BTD.requires_grad
    rows_ND = network.concepts.known.embedding_KD[found.concept_N].detach()
    expected_ND = 1.5 * rows_ND / rows_ND.norm(dim=1, keepdim=True)
    torch.testing.assert_close(addition_BTD[found.aimed_BT], expected_ND)
    assert not addition_BTD[~found.aimed_BT].any()


def test_respond_and_express_are_the_plain_formulas(monkeypatch):
    monkeypatch.setattr(interleaving, "ROWS_AT_ONCE", 3)
    network = tiny.lm()
    _, asked, found = aimed()
    hidden_ND = network.hidden(asked.noisy_BT)[found.aimed_BT]
    logits_NK = network.concepts.known.logits(hidden_ND)
    own_N = logits_NK.gather(1, found.concept_N[:, None])[:, 0]
    torch.testing.assert_close(respond(network, hidden_ND, found), -F.logsigmoid(own_N).sum())
    share_NV = network.unembed(hidden_ND).softmax(1)
    said = [
        share_NV[i, [w for w in words if w >= 0]].sum()
        for i, words in enumerate(found.words_NW.tolist())
    ]
    expected = -torch.stack(said).log().sum()
    torch.testing.assert_close(express(network, hidden_ND, found), expected)


def test_phases_by_hand():
    config = InterleavingConfig(phases=2, phase=0.1, warmup=0.2, gap=0.05)
    steering = [step for step in range(40) if schedules.steers(config, step, 40)]
    assert steering == [8, 9, 10, 11, 14, 15, 16, 17]


def test_no_phase_never_steers():
    config = InterleavingConfig(phases=0)
    assert not any(schedules.steers(config, step, 200) for step in range(200))


def test_phases_beyond_the_run_are_refused():
    with pytest.raises(ValidationError, match=r"end after 1\.22 of the steps"):
        InterleavingConfig(phases=4, phase=0.3)
