"""Interpretability metrics on hand-made tensors and tiny networks (method §7.1)."""

import math

import pytest
import torch
from torch import Tensor

from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.forcing import Parts
from model.language_model import LanguageModel
from model.losses import dependence as trained_dependence
from model.metrics import (
    Projections,
    add_absence,
    agreement,
    base_rate_nats,
    concept_nats,
    dependence,
    presence,
    prevalence_nats,
    read_targets,
    top_tokens,
)
from model.tiles import Votes, concept_pass

WIDTH, VOCABULARY, N_KNOWN = 8, 29, 6


def network() -> LanguageModel:
    backbone = BackboneConfig(
        vocab_size=VOCABULARY, width=WIDTH, n_layers=1, n_heads=2, n_kv_heads=1, mlp_width=12,
        max_length=10, block=5,
    )  # fmt: skip
    bottleneck = BottleneckConfig(n_known=N_KNOWN, n_unknown=9, rank=3, top_k=4, top_k_unknown=5)
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=bottleneck, bos_id=24, eos_id=25, pad_id=26, mask_id=27,
        end_of_chunk_id=28,
    )  # fmt: skip
    lm = LanguageModel(config).eval()
    with torch.no_grad():
        for parameter in lm.parameters():
            parameter.mul_(10.0)
    return lm


def states(n: int) -> Tensor:
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(0))


def test_contribution_by_hand():
    parts = Projections(torch.tensor([3.0]), torch.tensor([-1.0]), torch.tensor([-4.0]))
    assert parts.contribution_N.tolist() == [0.5]
    assert parts.known_share_N.tolist() == [0.375]
    assert parts.signed_N3.tolist() == [[0.375, -0.125, -0.5]]
    assert parts.total_N.tolist() == [-2.0]


def test_contribution_is_one_without_a_residual():
    parts = Projections(torch.randn(7), torch.randn(7), torch.zeros(7))
    torch.testing.assert_close(parts.contribution_N, torch.ones(7))


def test_losses_are_those_of_the_states_put_together_again():
    lm, hidden_ND, target_N = network(), states(11), torch.arange(11)
    truth_ND = torch.randn(11, WIDTH)
    found = read_targets(lm, hidden_ND, truth_ND, target_N)
    parts = lm.concepts(hidden_ND)

    def nats(state_ND: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(lm.unembed(state_ND), target_N, reduction="none")

    torch.testing.assert_close(found.nll_N, nats(hidden_ND))
    torch.testing.assert_close(found.residual_zero_N, nats(parts.known_BTD + parts.unknown_BTD))
    torch.testing.assert_close(found.known_zero_N, nats(hidden_ND - parts.known_BTD))
    torch.testing.assert_close(found.forced_N, nats(truth_ND + parts.unknown_BTD))
    assert found.logit_error_N.max() < 1e-4


def test_reading_in_pieces_changes_nothing(monkeypatch):
    lm, target_N = network(), torch.arange(9)
    whole = read_targets(lm, states(9), torch.zeros(9, WIDTH), target_N)
    monkeypatch.setattr("model.likelihood.ROWS_AT_ONCE", 4)
    pieces = read_targets(lm, states(9), torch.zeros(9, WIDTH), target_N)
    torch.testing.assert_close(whole.residual_zero_N, pieces.residual_zero_N)
    torch.testing.assert_close(whole.projections.known_N, pieces.projections.known_N)


def test_silencing_a_concept_does_what_was_foretold():
    found = agreement(network(), states(5), torch.arange(5))
    torch.testing.assert_close(found.predicted_N, found.observed_N, rtol=1e-4, atol=1e-5)
    assert found.observed_N.abs().min() > 1e-3


def test_presence_is_the_or_over_tokens_in_any_order():
    logits_NK = torch.randn(6, 2)
    chunk_N = torch.tensor([0, 1, 0, 1, 1, 1])
    absence_CK = torch.zeros(2, 2)
    for rows in (slice(4, 6), slice(0, 4)):
        add_absence(absence_CK, logits_NK[rows], chunk_N[rows])
    absent_NK = 1 - logits_NK.sigmoid()
    wanted_CK = torch.stack([1 - absent_NK[chunk_N == chunk].prod(dim=0) for chunk in range(2)])
    torch.testing.assert_close(presence(absence_CK), wanted_CK)


def test_concept_nats_are_the_loss_that_was_trained():
    logits_NK, chunk_N = torch.randn(5, 3), torch.tensor([0, 0, 1, 1, 1])
    absence_CK = torch.zeros(2, 3)
    add_absence(absence_CK, logits_NK, chunk_N)
    label_CK = torch.tensor([[False, False, True], [True, True, False]])
    votes = Votes(chunk_N, torch.tensor([[2, -1], [0, 1]]))
    trained = concept_pass(torch.eye(5), logits_NK.T, None, torch.zeros(3, 1), votes, n_summed=0)
    torch.testing.assert_close(concept_nats(absence_CK, label_CK).sum(), trained.loss)


def test_base_rates_by_hand():
    label_CK = torch.tensor([[True, False], [True, False], [False, False], [False, False]])
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert base_rate_nats(label_CK) == pytest.approx(quarter)
    assert prevalence_nats(label_CK) == pytest.approx(math.log(2) / 2)


def test_dependence_is_the_penalty_that_was_trained():
    known_MD, unknown_MD = torch.randn(7, 4), torch.randn(7, 4)
    parts = Parts(
        hidden_ND=known_MD, known_ND=known_MD, unknown_ND=unknown_MD, truth_ND=known_MD,
        supervised_N=torch.ones(7, dtype=torch.bool),
    )  # fmt: skip
    trained = trained_dependence(parts, torch.ones(1, 7, dtype=torch.bool), with_residual=False)
    assert dependence(known_MD, unknown_MD).paper == pytest.approx(float(trained), rel=1e-4)


def test_dependence_without_scale_is_one_for_a_rotated_copy_and_small_for_noise():
    known_MD = torch.randn(400, 3)
    rotation_DD = torch.linalg.qr(torch.randn(3, 3)).Q
    assert dependence(known_MD, 5.0 * known_MD @ rotation_DD).cka == pytest.approx(1.0, abs=1e-5)
    assert dependence(known_MD, torch.randn(400, 3)).cka < 0.05


def test_top_tokens_leave_out_special_ones():
    lm = network()
    with torch.no_grad():
        lm.embedding.weight.zero_()
        lm.embedding.weight[[3, 11, 26]] = lm.concepts.known.embedding_KD[2] * torch.tensor(
            [[2.0], [1.5], [9.0]]
        )
    assert top_tokens(lm, [2], 2, special_ids=[24, 25, 26, 27, 28]).tolist() == [[3, 11]]
