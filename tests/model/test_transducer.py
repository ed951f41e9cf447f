"""The transducer learns a map it could learn, and repeats itself."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from model import transducer

HOW = transducer.Fit(hidden_width=24, n_steps=250, batch_pairs=32, lr=3e-3, contrast=0.1, seed=1)


def some_pairs(n: int) -> tuple[Tensor, Tensor]:
    """States, and vectors that are a fixed nonlinear function of them."""
    generator = torch.Generator().manual_seed(0)
    state_ND = torch.randn(n, 6, generator=generator)
    mix_DE = torch.randn(6, 5, generator=generator)
    return state_ND, functional.normalize(torch.tanh(state_ND) @ mix_DE, dim=-1)


def test_unseen_states_find_their_own_vector() -> None:
    state_ND, vector_NE = some_pairs(440)
    fitted = transducer.fit(state_ND[:400], vector_NE[:400], HOW)
    with torch.no_grad():
        found_NE = fitted(state_ND[400:])
    own_N = (found_NE * vector_NE[400:]).sum(-1)
    assert own_N.mean() > 0.8
    torch.testing.assert_close(found_NE.norm(dim=-1), torch.ones(40))


def test_the_same_seed_fits_the_same_bytes_and_leaves_the_global_generator_alone() -> None:
    pairs = some_pairs(20)
    before = torch.random.get_rng_state()
    how = transducer.Fit(hidden_width=7, n_steps=3, batch_pairs=8, lr=1e-3, contrast=0.1, seed=4)
    first, second = transducer.fit(*pairs, how), transducer.fit(*pairs, how)
    assert torch.equal(before, torch.random.get_rng_state())
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name])


def test_a_saved_transducer_answers_as_before(tmp_path: Path) -> None:
    fitted = transducer.Transducer(width=6, hidden_width=7, encoder_width=5).eval()
    transducer.save(fitted, tmp_path / "transducer.safetensors")
    again = transducer.load(tmp_path / "transducer.safetensors")
    state_ND, _ = some_pairs(3)
    assert torch.equal(again(state_ND), fitted(state_ND))


def test_states_without_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="3 states for 2 vectors"):
        transducer.fit(torch.zeros(3, 6), torch.zeros(2, 5), HOW)


def test_whitened_states_vary_as_much_in_every_direction() -> None:
    state_ND, _ = some_pairs(500)
    squeezed_ND = state_ND * torch.tensor([100.0, 1.0, 0.5, 0.5, 0.4, 3.0]) + 7.0
    white_ND = (squeezed_ND - squeezed_ND.mean(0)) @ transducer.whitening(squeezed_ND * 1e3) * 1e3
    variance_D = white_ND.var(0)
    assert variance_D[0] == pytest.approx(1.0, abs=0.02)
    assert variance_D[2] < 0.2  # far below the floor: noise stays small
    assert torch.isfinite(transducer.whitening(torch.ones(4, 3))).all()
