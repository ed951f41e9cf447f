"""How well a language model tags: valid answers, and whether tags lead back to their chunk.

    python -m benchmarks.tagging [--chunks 60] [--seed 0]

Chunks of the demo recipe's corpus, sources and domains in proportion. An answer is valid if it has
at least one usable tag at the first attempt or a later one the config allows. Retrieval: a chunk's
tags, as one text, are compared with its own chunk and 29 others; a hit is the own chunk first. Tags
are those the model said, before phrases fill gaps and drifted ones go.

Shape suffixes: N chunks   D width of a vector   R draws of other chunks
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import embedding
from components.atlas import asking, sampling
from components.atlas.asking import Said
from components.atlas.chunking import chunk
from components.atlas.sampling import Passage
from components.corpus.stage import ingest
from components.embedding import Floats
from model.events import ignore
from model.intervals import Interval, ratio_interval
from pipelines.recipes import RECIPES

_OTHERS = 29
_DRAWS_OF_OTHERS = 100
_BOOTSTRAP = 1_000


def passages_of(folder: Path, n: int, seed: int) -> list[Passage]:
    """A stratified sample of chunks of the demo corpus."""
    recipe = RECIPES["demo"]()
    documents, chunks = folder / "documents", folder / "chunks"
    for made in (documents, chunks):
        made.mkdir()
    ingest(documents, recipe.corpus)
    chunk(documents, chunks, recipe.chunking)
    return sampling.draw(documents, chunks, n_train=n, n_held_out=0, seed=seed).passages


def retrieval(tags_ND: Floats, chunk_ND: Floats, seed: int) -> NDArray[np.float64]:
    """How often each chunk's tags find it first among itself and 29 others, over many draws."""
    cosine_NN = tags_ND @ chunk_ND.T
    draw = np.random.default_rng(seed)
    hits_N = np.zeros(len(chunk_ND))
    for row in range(len(chunk_ND)):
        others = np.delete(np.arange(len(chunk_ND)), row)
        drawn_RN = np.stack(
            [draw.choice(others, _OTHERS, replace=False) for _ in range(_DRAWS_OF_OTHERS)]
        )
        best_R = cosine_NN[row, drawn_RN].max(axis=1)
        hits_N[row] = (cosine_NN[row, row] > best_R).mean()
    return hits_N


def report(passages: Sequence[Passage], said: Said, chunk_ND: Floats, tags_ND: Floats) -> list[str]:
    """Lines for a person."""
    n = len(passages)
    hits_N = retrieval(tags_ND, chunk_ND, seed=0)
    n_tags = sum(len(tags) for tags in said.tags)
    return [
        f"valid output: {_shown(_wilson(n - len(said.unread), n))}",
        f"tags to own chunk, first of {_OTHERS + 1}: {_shown(_mean(hits_N))}",
        f"{n_tags / n:.1f} tags a chunk; {said.took.n_answers} answers, "
        f"{said.took.n_prompt_tokens} + {said.took.n_completion_tokens} tokens, "
        f"{said.took.cost_usd:.2f} USD",
    ]


def _wilson(n_valid: int, n: int) -> Interval:
    """Wilson's 95% interval of a share: it says something where every answer was valid."""
    share, z2 = n_valid / n, 1.96**2
    centre, scale = (share + z2 / (2 * n)) / (1 + z2 / n), 1 / (1 + z2 / n)
    half = scale * (z2 * (share * (1 - share) / n + z2 / (4 * n * n))) ** 0.5
    return Interval(share, centre - half, min(1.0, centre + half), n)


def _mean(value_N: NDArray[np.float64]) -> Interval:
    return ratio_interval(value_N, np.ones_like(value_N), draws=_BOOTSTRAP, seed=0)


def _shown(found: Interval) -> str:
    return f"{found.value:.3f} ({found.low:.3f}–{found.high:.3f}, n = {found.n_groups} chunks)"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--chunks", type=int, default=60)
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    config = RECIPES["demo"]().tagging
    encoder = embedding.load(config.encoder)
    with tempfile.TemporaryDirectory() as folder:
        passages = passages_of(Path(folder), options.chunks, options.seed)
    chunk_ND = encoder.embed([passage.text for passage in passages])
    said = asking.ask(passages, chunk_ND, encoder, config, ignore)
    texts = [", ".join(tag.text for tag in tags) for tags in said.tags]
    print("\n".join(report(passages, said, chunk_ND, encoder.embed(texts))))
    print(os.linesep.join(f"  {text}" for text in texts[:: max(1, len(texts) // 8)]))


if __name__ == "__main__":
    main()
