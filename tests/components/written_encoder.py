"""A static encoder of a few words, written into a folder."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from components import static_encoder
from components.static_encoder import StaticEncoder, Table

WORDS = ("sea", "ship", "law", "court", "sum", "proof", "one", "two")
WIDTH = 5


def tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel({word: row for row, word in enumerate(("?", *WORDS))}, "?"))
    made.pre_tokenizer = Whitespace()
    return made


def write_encoder(folder: Path) -> StaticEncoder:
    """Each word has a vector of its own and weighs the same."""
    draw = np.random.default_rng(0)
    n = len(WORDS) + 1
    table = Table(np.ones(n, np.float32), draw.normal(size=(n, WIDTH)).astype(np.float16))
    return static_encoder.save(table, tokenizer(), folder, max_wordpieces=6, facts={})


def sentences(n: int) -> list[str]:
    """Texts of one to six words."""
    draw = np.random.default_rng(1)
    return [" ".join(draw.choice(WORDS, size=draw.integers(1, 7))) for _ in range(n)]
