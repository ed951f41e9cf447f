"""A Tokens artifact of a few documents."""

from collections.abc import Sequence
from pathlib import Path

from components.packing.config import PackConfig
from components.packing.stage import pack
from tests.components.written_corpus import Text, write_corpus


def packed(folder: Path, texts: Sequence[Text], vocab_size: int = 264, **packing: int) -> Path:
    """Write the documents below `folder` and pack them in blocks of four tokens."""
    corpus = write_corpus(folder / "corpus", texts, n_concepts=3)
    tokens = folder / "tokens"
    tokens.mkdir()
    config = PackConfig(vocab_size=vocab_size, block=4, **packing)
    pack(corpus.documents, corpus.chunks, corpus.concepts, corpus.labels, tokens, config)
    return tokens
