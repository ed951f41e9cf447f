"""The smallest network that reads text, for tests that ask it questions: byte by byte, 32 at once.

Its weights are random, and large enough that it is sure of what it says.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from components.networks import Network
from model.config import Family, NetworkConfig
from model.language_model import LanguageModel
from model.tokenizer import N_BYTES, SPECIALS, Tokenizer, train

LENGTH, BLOCK = 32, 8


@cache
def tokenizer() -> Tokenizer:
    with TemporaryDirectory() as folder:
        return train([""], N_BYTES + len(SPECIALS), Path(folder) / "tokenizer.json")


def network(family: Family = "cdlm_concept") -> Network:
    known = tokenizer()
    sizes = NetworkConfig(
        family=family, width=16, n_layers=1, n_heads=2, n_kv_heads=1, mlp_width=24,
        max_length=LENGTH, block=BLOCK, rank=3, top_k=4, top_k_unknown=6,
    )  # fmt: skip
    config = sizes.language_model(vocab_size=known.vocab_size, n_known=5, specials=known.specials)
    lm = LanguageModel(config, seed=3)
    with torch.no_grad():
        for parameter in lm.parameters():
            if parameter.ndim == 2:
                parameter.mul_(5.0)
    return Network(lm.eval(), known, digest="of a test")
