"""Documents into chunks, which carry concepts (paper §4, Atlas stage one): `components.cutting`."""

from collections.abc import Iterator
from pathlib import Path

from components import contracts, embedding
from components.atlas.config import ChunkConfig
from components.cutting import cut

_DOCUMENTS_PER_BATCH = 256


def chunk(documents: Path, chunks: Path, config: ChunkConfig) -> int:
    """Cut every document. Returns the number of chunks, which come in the documents' order.

    Raises ValueError for a corpus without documents.
    """
    if contracts.verify(documents, contracts.DOCUMENTS).rows == 0:
        raise ValueError(
            f"{documents} holds no document, so there is nothing to cut; give the corpus a source "
            f"that has text and run `clearstory rerun --from ingest`"
        )
    return contracts.write(_rows(documents, config), chunks, contracts.CHUNKS)


def _rows(documents: Path, config: ChunkConfig) -> Iterator[dict[str, object]]:
    word_pieces = embedding.word_pieces(config.encoder)
    chunk_id = 0
    for batch in contracts.stream(documents, contracts.DOCUMENTS, rows=_DOCUMENTS_PER_BATCH):
        for doc_id, domain, text in zip(
            batch["doc_id"], batch["domain"], batch["text"], strict=True
        ):
            for piece in cut(text, word_pieces, config, is_code=domain in config.code_domains):
                yield {
                    "chunk_id": chunk_id,
                    "doc_id": doc_id,
                    "start": piece.start,
                    "end": piece.end,
                    "n_wordpieces": piece.n_wordpieces,
                    "status": piece.status,
                }
                chunk_id += 1
