"""Tags of a few families of meaning, as arrays and as Tags@1 with their Chunks@1."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from components import contracts
from components.atlas.tagged import Tagged, places
from components.embedding import Embedder
from components.hashing import HashingEmbedder

FAMILIES = {
    "sea": ["sea voyage", "sea voyages", "long sea voyage"],
    "law": ["criminal law", "criminal laws", "law of crimes"],
    "sum": ["number theory", "theory of numbers", "number theories"],
}


def rows(tags_of: Mapping[int, Sequence[str]], kind: str = "content") -> list[dict[str, object]]:
    """One row a tag of each chunk."""
    return [
        {"chunk_id": chunk, "tag": tag, "kind": kind}
        for chunk, tags in sorted(tags_of.items())
        for tag in tags
    ]


def tagged(tags_of: Mapping[int, Sequence[str]], encoder: Embedder | None = None) -> Tagged:
    """The same as arrays."""
    found = places(pa.Table.from_pylist(rows(tags_of), schema=contracts.TAGS.schema))
    return found.tagged((encoder or HashingEmbedder()).embed(found.texts))


def write(folder: Path, tags: Sequence[Mapping[str, object]], n_chunks: int) -> dict[str, Path]:
    """Folders of Tags@1 and Chunks@1, and an empty one for the library."""
    made = {name: folder / name for name in ("tags", "chunks", "concepts")}
    for each in made.values():
        each.mkdir(parents=True)
    (made["tags"] / "sample.json").write_text("{}")
    contracts.write(tags, made["tags"], contracts.TAGS)
    piece = {"doc_id": "d", "start": 0, "end": 1, "n_wordpieces": 4, "status": "ok"}
    contracts.write(
        ({"chunk_id": row, **piece} for row in range(n_chunks)), made["chunks"], contracts.CHUNKS
    )
    return made


def families() -> list[dict[str, object]]:
    """12 chunks, each with two tags of one of the three families."""
    listed = list(FAMILIES.values())
    return rows(
        {
            chunk: [listed[chunk % 3][(chunk // 3 + place) % 3] for place in range(2)]
            for chunk in range(12)
        }
    )
