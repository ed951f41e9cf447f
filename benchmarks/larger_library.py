"""The library of the recipe `large_library` out of a finished run, without the stages before it.

    python -m benchmarks.larger_library RUN OUT       RUN: a run folder of `clearstory run demo`

The run's own tags stand for the language model's, which is not asked again; phrases tag the further
chunks and the library is made as that recipe says. Writes Tags@1 and Concepts@1 under OUT, checks
both by the recipe's gates, and prints 50 concepts drawn with seed 0 to be read.
"""

import json
import sys
from pathlib import Path

import numpy as np

from components import contracts, embedding
from components.atlas import sampling, tagging, vectors
from components.atlas.canonicalisation import canonicalise
from components.gates.stage import check
from components.library import Concept, open_library
from pipelines.recipe import Recipe
from pipelines.recipes import named


def make(run: Path, out: Path, recipe: Recipe) -> list[Concept]:
    """The library and all it takes, under `out`."""
    records = [json.loads(path.read_text()) for path in sorted((run / "stages").glob("*.json"))]
    outputs = {record["task"]: record["outputs"] for record in records}
    documents, chunks, vectors_folder, said = (
        Path(outputs[task][name]["location"])
        for task, name in (
            ("ingest", "documents"), ("chunk", "chunks"), ("embed", "vectors"), ("tag", "tags"),
        )
    )  # fmt: skip
    tags, concepts = out / "tags", out / "concepts"
    for folder in (tags, concepts):
        folder.mkdir(parents=True)
    config = recipe.tagging
    sample = sampling.draw(
        documents, chunks, config.n_train, config.n_held_out, config.seed, config.n_by_phrases
    )
    account = contracts.json_file(said, tagging.SAMPLE_FILE)
    asked = [passage.chunk_id for passage in sample.passages]
    assert account["tagged"] == asked, "the run drew another sample than the recipe would"
    encoder = embedding.load(config.encoder)
    read = vectors.read(vectors_folder, encoder)
    found = tagging.by_phrases(sample.further, read, encoder, config)
    account = tagging.joined(account, found)
    (tags / tagging.SAMPLE_FILE).write_text(json.dumps(account, indent=1))
    rows = contracts.read(said, contracts.TAGS).to_pylist()
    rows += [
        {"chunk_id": chunk_id, "tag": tag.text, "kind": tag.kind}
        for chunk_id, of_chunk in found.items()
        for tag in of_chunk
    ]
    contracts.write(sorted(rows, key=lambda row: row["chunk_id"]), tags, contracts.TAGS)
    canonicalise(tags, chunks, concepts, recipe.library)
    return list(open_library(concepts).concepts)


def broken_rules(out: Path, recipe: Recipe) -> int:
    """Of the gates of tags and concepts; each report lies beside what it is about."""
    n_broken = 0
    for name in ("tags", "concepts"):
        report = out / f"{name}-checked"
        report.mkdir()
        n_broken += check(out / name, report, recipe.gates)
    return n_broken


if __name__ == "__main__":
    chosen, folder = named("large_library"), Path(sys.argv[2])
    made = make(Path(sys.argv[1]), folder, chosen)
    print(f"{len(made)} concepts, {broken_rules(folder, chosen)} rules of the gates broken")
    draw = np.random.default_rng(0).choice(len(made), size=min(50, len(made)), replace=False)
    for row in sorted(draw.tolist()):
        each = made[row]
        print(f"{row:4} {each.n_chunks:4} {each.name} | {each.kind} | {each.parent} | "
              f"{', '.join(each.members[:8])}")  # fmt: skip
