"""From the network's own states to the space of the chunk encoder (paper §6.1.3, B.1).

A chunk the network wrote has no vector in the index's space until its text is encoded, and text is
only what was said. The transducer maps the mean recomposed state of a chunk's tokens to the vector
the encoder gives the chunk's text, so that retrieval starts from what the network represented.

    whitening -> Linear -> GELU -> Linear -> GELU -> Linear -> unit length

Mean states of chunks lie close together: what they share is large and what tells them apart is
small. Whitening, fixed by the states that are fitted on, makes all directions equally large.

Fitted on 1 − cosine, plus a contrastive term: the first alone is content with the mean of all
chunks, which retrieves nothing in particular.

Shape suffixes: N pairs, or anything flat   D width of a state   F hidden width
    E width of the encoder's vectors   B batch   T position   C chunk of a batch
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

TEMPERATURE = 0.05
FLOOR = 1e-3  # of the mean variance: directions with less are noise, not to be blown up
SAME = 0.999  # above this cosine two targets are one text, not a negative of each other


@dataclass(frozen=True)
class Fit:
    """How a transducer is fitted: sizes, steps of AdamW with a rate that falls to 0, seed."""

    hidden_width: int
    n_steps: int
    batch_pairs: int
    lr: float
    contrast: float
    seed: int


class Transducer(nn.Module):
    """Two hidden layers from a mean state to a unit vector."""

    def __init__(self, width: int, hidden_width: int, encoder_width: int) -> None:
        super().__init__()
        self.mean_D: Tensor
        self.whiten_DD: Tensor
        self.register_buffer("mean_D", torch.zeros(width))
        self.register_buffer("whiten_DD", torch.eye(width))
        self.into = nn.Linear(width, hidden_width)
        self.between = nn.Linear(hidden_width, hidden_width)
        self.out = nn.Linear(hidden_width, encoder_width)

    def forward(self, state_ND: Tensor) -> Tensor:
        white_ND = (state_ND - self.mean_D) @ self.whiten_DD
        hidden_NF = functional.gelu(self.into(white_ND))
        hidden_NF = functional.gelu(self.between(hidden_NF))
        return functional.normalize(self.out(hidden_NF), dim=-1)


def fit(state_ND: Tensor, vector_NE: Tensor, how: Fit) -> Transducer:
    """The transducer that turns states into their chunks' unit vectors."""
    if len(state_ND) != len(vector_NE) or len(state_ND) == 0:
        raise ValueError(f"{len(state_ND)} states for {len(vector_NE)} vectors; give pairs")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(how.seed)
        transducer = Transducer(state_ND.shape[1], how.hidden_width, vector_NE.shape[1])
        transducer.mean_D.copy_(state_ND.mean(0))
        transducer.whiten_DD.copy_(whitening(state_ND))
        optimiser = torch.optim.AdamW(transducer.parameters(), lr=how.lr)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, how.n_steps)
        for _ in range(how.n_steps):
            pairs_N = torch.randint(len(state_ND), (min(how.batch_pairs, len(state_ND)),))
            loss = _loss(transducer(state_ND[pairs_N]), vector_NE[pairs_N], how.contrast)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            falling.step()
    return transducer.eval()


def whitening(state_ND: Tensor) -> Tensor:
    """The symmetric matrix after which the states' directions all vary as much."""
    centred_ND = (state_ND - state_ND.mean(0)).double()
    variance_D, directions_DD = torch.linalg.eigh(centred_ND.T @ centred_ND / len(state_ND))
    floor = (FLOOR * variance_D.mean()).clamp_min(torch.finfo(torch.float32).tiny)
    scaled_DD = directions_DD / (variance_D.clamp_min(0) + floor).sqrt()
    return (scaled_DD @ directions_DD.T).float()


def mean_states(state_BTD: Tensor, chunk_BT: Tensor, n_chunks: int) -> Tensor:
    """Mean state (C, D) of each chunk's tokens; −1 is no chunk, a chunk without tokens is 0."""
    inside_BT = chunk_BT >= 0
    chunk_N = chunk_BT[inside_BT]
    sum_CD = state_BTD.new_zeros(n_chunks, state_BTD.shape[-1])
    sum_CD.index_add_(0, chunk_N, state_BTD[inside_BT])
    return sum_CD / chunk_N.bincount(minlength=n_chunks).clamp_min(1)[:, None]


def save(transducer: Transducer, path: Path) -> None:
    save_file(transducer.state_dict(), path)


def load(path: Path) -> Transducer:
    """A transducer from its weights, whose shapes say how wide it is."""
    weights = load_file(path)
    hidden_width, width = weights["into.weight"].shape
    transducer = Transducer(width, hidden_width, weights["out.weight"].shape[0])
    transducer.load_state_dict(weights)
    return transducer.eval()


def _loss(found_NE: Tensor, vector_NE: Tensor, contrast: float) -> Tensor:
    cosine_N = (found_NE * vector_NE).sum(-1)
    own_N = torch.arange(len(found_NE))
    same_NN = (vector_NE @ vector_NE.T > SAME) & (own_N[:, None] != own_N)
    score_NN = (found_NE @ vector_NE.T / TEMPERATURE).masked_fill(same_NN, float("-inf"))
    return (1 - cosine_N).mean() + contrast * functional.cross_entropy(score_NN, own_N)
