"""A library of 400 concepts or more out of a finished run, without a language model's time.

    python -m benchmarks.larger_library RUN OUT       RUN: a run folder of `clearstory run demo`

The tags of the run, which a language model gave to a few hundred chunks, are joined by phrases of
6,000 further chunks: only phrases that recur in four or more of them, so that few need encoding.
Writes Tags@1 and Concepts@1 under OUT, and prints 50 concepts drawn with seed 0 to be read.

Shape suffixes: N passages   P phrases   D width of a vector
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from components import contracts, embedding
from components.atlas import phrases, sampling, vectors
from components.atlas.canonicalisation import canonicalise
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.atlas.sampling import Passage
from components.atlas.tags import typed
from components.atlas.vocabulary import key
from components.embedding import Embedder
from components.library import Concept, open_library

ENCODER = "minilm-int8"
N_CHUNKS, TAGS_PER_CHUNK, LEAST_PASSAGES, LARGEST_SHARE = 6_000, 8, 4, 0.1
LIBRARY = CanonicaliseConfig(
    encoder=ENCODER, sweep=(800, 1_000, 1_200, 1_400), min_tag_chunks=3, min_chunks=8,
    drop_share=0.25,
    naming=NamingConfig(namer="medoid", vocabulary="encyclopedia", least_noun=0.55),
)  # fmt: skip


def recurring(
    passages: Sequence[Passage], passage_ND: np.ndarray, encoder: Embedder
) -> list[dict[str, object]]:  # type: ignore[type-arg]
    """Rows of Tags@1: of each passage the recurring phrases that are most like it."""
    found_of = [phrases.candidates(passage.text) for passage in passages]
    seen = Counter(phrase for found in found_of for phrase in found)
    most = LARGEST_SHARE * len(passages)
    kept = sorted(phrase for phrase, n in seen.items() if LEAST_PASSAGES <= n <= most)
    row_of = {phrase: row for row, phrase in enumerate(kept)}
    phrase_PD = encoder.embed(kept)
    rows: list[dict[str, object]] = []
    for passage, found, passage_D in zip(passages, found_of, passage_ND, strict=True):
        mine = [row_of[phrase] for phrase in found if phrase in row_of]
        order = np.argsort(-(phrase_PD[mine] @ passage_D), kind="stable").tolist() if mine else []
        best: dict[str, str] = {}
        for at in order:
            best.setdefault(key(kept[mine[at]]), kept[mine[at]])
        chosen = ((text, "") for text in list(best.values())[:TAGS_PER_CHUNK])
        rows += [
            {"chunk_id": passage.chunk_id, "tag": tag.text, "kind": tag.kind}
            for tag in typed(chosen, passage.text)
        ]
    return rows


def make(run: Path, out: Path) -> list[Concept]:
    """The library and all it takes, under `out`."""
    records = [json.loads(path.read_text()) for path in sorted((run / "stages").glob("*.json"))]
    outputs = {record["task"]: record["outputs"] for record in records}
    where = {
        name: Path(outputs[task][name]["location"])
        for task, name in (
            ("ingest", "documents"), ("chunk", "chunks"), ("embed", "vectors"), ("tag", "tags"),
        )
    }  # fmt: skip
    for name in ("tags", "concepts"):
        (out / name).mkdir(parents=True)
    encoder = embedding.load(ENCODER)
    passages = sampling.draw(where["documents"], where["chunks"], N_CHUNKS, 0, seed=1).passages
    said = contracts.read(where["tags"], contracts.TAGS).to_pylist()
    tagged = {row["chunk_id"] for row in said}
    new = [passage for passage in passages if passage.chunk_id not in tagged]
    new_ND = vectors.read(where["vectors"], encoder).rows([each.chunk_id for each in new])
    rows = [*said, *recurring(new, new_ND, encoder)]
    (out / "tags" / "sample.json").write_text("{}")
    contracts.write(rows, out / "tags", contracts.TAGS)
    canonicalise(out / "tags", where["chunks"], out / "concepts", LIBRARY)
    return list(open_library(out / "concepts").concepts)


if __name__ == "__main__":
    concepts = make(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{len(concepts)} concepts")
    draw = np.random.default_rng(0).choice(len(concepts), size=50, replace=False)
    for row in sorted(draw.tolist()):
        each = concepts[row]
        print(f"{row:4} {each.n_chunks:4} {each.name} | {each.kind} | {each.parent} | "
              f"{', '.join(each.members[:8])}")  # fmt: skip
