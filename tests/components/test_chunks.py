"""The text of chunks, of a corpus whose tables have several row groups."""

import pyarrow.parquet as pq
import pytest

from components import contracts
from components.chunks import ChunkTexts, texts
from tests.components.written_chunks import N, write_chunks


@pytest.fixture
def given(tmp_path):
    folders = write_chunks(tmp_path)
    for name, contract, rows in (
        ("documents", contracts.DOCUMENTS, 1),
        ("chunks", contracts.CHUNKS, 5),
    ):
        table = pq.read_table(folders[name] / "rows.parquet")
        groups = [table.slice(at, rows) for at in range(0, table.num_rows, rows)]
        contracts.write_batches(groups, folders[name], contract)
    return folders["documents"], folders["chunks"]


def test_texts_of_chunks_come_in_the_order_they_are_asked_for(given):
    found = ChunkTexts(*given).at([22, 4, 20, 5, 4])
    assert found == ["three ", "chunk 04.", "one ", "chunk 05.", "chunk 04."]
    assert ChunkTexts(*given).at([]) == []


def test_all_chunks_have_the_same_text_however_they_are_read(given):
    streamed = [text for batch in texts(*given, rows=4) for text in batch["text"]]
    assert ChunkTexts(*given).at(range(N)) == streamed == ChunkTexts(*given).between(0, N)


def test_chunks_of_another_corpus_are_refused(given):
    documents, chunks = given
    contracts.write_batches(
        [pq.read_table(documents / "rows.parquet").slice(0, 1)], documents, contracts.DOCUMENTS
    )
    with pytest.raises(contracts.ContractError, match=r"chunks of document d1, .*--from chunk"):
        ChunkTexts(documents, chunks).at([0, 21])
    with pytest.raises(contracts.ContractError, match=r"chunks of document d1, .*--from chunk"):
        list(texts(documents, chunks, rows=4))
