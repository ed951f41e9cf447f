"""New text into an index that is there: nothing is trained again (paper B.1).

    chunks of new texts      one more shard, merged on disk, numbered after the rows there
    chunks of known texts    one more place of their row

Chunk ids of the new corpus go on after those of the index, so that none means two chunks. The
transducer and what was measured stay; `n_measured` says how many rows that speaks of.

Shape suffixes: N new row
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from components import contracts, nearest_lists, nearest_shards
from components.contracts import ContractError
from components.index.rows import IndexedChunks, collapsed, digest, vectors_of
from components.index_facts import EncoderFacts, IndexFacts
from components.nearest_config import LayoutConfig
from components.nearest_shards import Vectors
from components.retrieval import FACTS_FILE, TRANSDUCER_FILE, facts_of, verify

Row = Mapping[str, object]


def add(
    index: Path, documents: Path, chunks: Path, vectors: Path, larger: Path, layout: LayoutConfig
) -> int:
    """Write the index with the training chunks of another corpus into `larger`.

    Returns the number of rows it has. Raises ContractError for vectors of another encoder.
    """
    verify(index)
    facts = facts_of(index)
    _check_encoder(facts, vectors, index)
    before = pq.read_table(index / contracts.ROWS_FILE).to_pylist()
    first_chunk_id = 1 + max(int(place["chunk_id"]) for row in before for place in row["places"])
    indexed = collapsed(documents, chunks)
    row_of_text = {digest(row["text"]): row["row"] for row in before}
    known, new = _sorted(indexed, row_of_text)

    to_index = Vectors(vectors_of(vectors, chunks), new.first_ids)
    shards = larger / "shards"
    if len(new.places):
        table = nearest_shards.add(index, to_index, larger, shards, facts.kind, layout)
        shutil.rmtree(shards)
        assert table.n == len(before) + len(new.places)
    else:
        for name in nearest_lists.FILES:
            if (index / name).is_file():
                shutil.copyfile(index / name, larger / name)
    shutil.copyfile(index / TRANSDUCER_FILE, larger / TRANSDUCER_FILE)
    grown = facts.model_copy(
        update={
            "n": len(before) + len(new.places),
            "n_chunks": facts.n_chunks + len(indexed.row_of),
        }
    )
    (larger / FACTS_FILE).write_text(grown.model_dump_json(indent=1))
    rows = _rows(before, known, new, first_chunk_id)
    return contracts.write(rows, larger, contracts.INDEX)


def _check_encoder(facts: IndexFacts, vectors: Path, index: Path) -> None:
    contracts.check_kind(contracts.manifest_of(vectors), contracts.VECTORS, str(vectors))
    found = EncoderFacts.model_validate(contracts.json_file(vectors, "encoder.json"))
    if found.digest != facts.encoder.digest:
        raise ContractError(
            f"{vectors} was made by the encoder {found.name} ({found.digest[:12]}…), {index} by "
            f"{facts.encoder.name} ({facts.encoder.digest[:12]}…): their vectors cannot be "
            f"compared. Embed the new chunks with {facts.encoder.name}"
        )


def _sorted(
    indexed: IndexedChunks, row_of_text: Mapping[bytes, int]
) -> tuple[dict[int, list[Row]], IndexedChunks]:
    """Places of texts that the index has, by its row, and the chunks of all other texts."""
    text_of = {row["row"]: digest(str(row["text"])) for row in indexed.rows()}
    known: dict[int, list[Row]] = {}
    places: list[Sequence[Row]] = []
    new_row: dict[int, int] = {}
    for row, mine in enumerate(indexed.places):
        if text_of[row] in row_of_text:
            known[row_of_text[text_of[row]]] = list(mine)
        else:
            new_row[row] = len(places)
            places.append(mine)
    row_of = {chunk: new_row[row] for chunk, row in indexed.row_of.items() if row in new_row}
    return known, replace(indexed, row_of=row_of, places=places)


def _rows(
    before: list[dict[str, object]], known: Mapping[int, list[Row]], new: IndexedChunks,
    first_chunk_id: int,
) -> Iterator[Row]:  # fmt: skip
    for row in before:
        more = known.get(int(str(row["row"])), [])
        shifted = [
            {**place, "chunk_id": int(str(place["chunk_id"])) + first_chunk_id} for place in more
        ]
        there = row["places"]
        assert isinstance(there, list)
        yield {**row, "n_places": len(there) + len(shifted), "places": [*there, *shifted]}
    yield from new.rows(len(before), first_chunk_id)
