"""The trained head: it finds a planted direction that no card tells of, whole or by samples."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from components.atlas import heads
from components.atlas.heads import Examples
from components.atlas.learning_config import HeadConfig


def planted(n_concepts: int, width: int, seed: int = 0) -> tuple[Examples, np.ndarray, np.ndarray]:
    """Half of the chunks with each concept are tagged; cards are noise but for the first."""
    draw = np.random.default_rng(seed)
    direction_KD = np.linalg.qr(draw.normal(size=(width, n_concepts)))[0].T
    carries_NK = draw.random((240, n_concepts)) < 0.2
    vectors_ND = carries_NK @ direction_KD + 0.1 * draw.normal(size=(240, width))
    vectors_ND = (vectors_ND / np.linalg.norm(vectors_ND, axis=1, keepdims=True)).astype("f4")
    tagged_PK = csr_array((carries_NK[:120] & (draw.random((120, n_concepts)) < 0.5)).astype("f4"))
    cards_KD = draw.normal(size=(n_concepts, width)).astype("f4")
    return Examples(vectors_ND[:120], tagged_PK, vectors_ND), cards_KD, carries_NK


@pytest.mark.parametrize("head", ["linear", "bi_encoder"])
def test_it_learns_a_planted_concept(head):
    examples, cards_KD, carries_NK = planted(n_concepts=5, width=12)
    config = HeadConfig(head=head, n_steps=60, lr=0.05, n_unlabelled=64, anchor=0.1)
    found = heads.fit(examples, cards_KD, np.full(5, 0.15, np.float32), config)
    scores_NK = found.scores(examples.unlabelled_UD)
    for concept in range(5):
        with_it = scores_NK[carries_NK[:, concept], concept]
        without = scores_NK[~carries_NK[:, concept], concept]
        assert (with_it[:, None] > without).mean() > 0.97


def test_samples_of_the_concepts_teach_what_all_of_them_teach():
    examples, cards_KD, carries_NK = planted(n_concepts=130, width=140)
    prior_K = np.full(130, 0.15, np.float32)
    in_order = {}
    for n_sampled in (64, 130):
        config = HeadConfig(n_steps=40, lr=0.05, n_unlabelled=64, n_sampled=n_sampled, anchor=0.1)
        scores_NK = heads.fit(examples, cards_KD, prior_K, config).scores(examples.unlabelled_UD)
        pairs = scores_NK[carries_NK][:, None] > scores_NK[~carries_NK][::100]
        in_order[n_sampled] = pairs.mean()
    assert in_order[64] > in_order[130] - 0.03 > 0.7


def test_a_sampled_step_scores_chunks_on_concepts_that_others_of_the_batch_carry():
    examples, _, _ = planted(n_concepts=90, width=96)
    config = HeadConfig(n_steps=2, n_sampled=64, n_tagged=64)
    for step in heads.steps(examples.labels_PK, 240, config):
        assert 64 < len(step.concepts_C) < 90
        whole = examples.labels_PK[step.tagged_B].toarray()
        assert (whole[:, step.concepts_C] == step.labels_BC).all()
        assert (step.labels_BC.sum(0) > 0).all(), "every concept of the step has a chunk with it"


def test_the_same_seed_gives_the_same_head():
    examples, cards_KD, _ = planted(n_concepts=3, width=8)
    prior_K = np.full(3, 0.15, np.float32)
    one, other = (heads.fit(examples, cards_KD, prior_K, HeadConfig(n_steps=3)) for _ in range(2))
    assert one.weight_KD.tobytes() == other.weight_KD.tobytes()
