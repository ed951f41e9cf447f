"""Packing: documents and labels become one stream of tokens (method: packing; paper §5.4).

    <|bos|> chunk <|endofchunk|> chunk <|endofchunk|> … <|endoftext|> <|bos|> …

Train, valid and test follow each other, each padded to whole blocks. A span of the table is a chunk
with the special tokens around it; labels reach tokens through it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from components import chunks as chunk_texts
from components import contracts
from components.packing import shards
from components.packing.config import PackConfig
from components.packing.labels import ChunkLabels
from components.packing.spans import Piece, Span, SplitWriter, TokenType, table
from model import tokenizer as tokenizers
from model.tokenizer import Tokenizer

_SPLITS = ("train", "valid", "test")
_ROWS = 2_000


def pack(
    documents: Path, chunks: Path, concepts: Path, labels: Path, tokens: Path, config: PackConfig
) -> int:
    """Tokenise and pack. Returns the number of spans."""
    tokenizer = _tokenizer(documents, tokens / "tokenizer.json", config)
    n_chunks = contracts.manifest_of(chunks).rows
    labelled = ChunkLabels(labels, concepts, n_chunks, config.max_concepts)
    narrow = tokenizer.vocab_size <= 1 << 16
    dtype: TokenType = np.dtype(np.uint16) if narrow else np.dtype(np.uint32)
    writers = {
        split: SplitWriter(tokens / f"{split}.part", split, dtype, tokenizer.specials)
        for split in _SPLITS
    }
    for piece in _pieces(documents, chunks, tokenizer):
        writers[piece.split].add(piece, labelled.of(piece.chunk_id))
    for writer in writers.values():
        writer.close(config.block)
    spans = [span for writer in writers.values() for span in writer.spans]
    written = shards.write(
        [writer.path for writer in writers.values()], spans, tokens, dtype,
        block=config.block, shard_tokens=config.shard_tokens,
    )  # fmt: skip
    facts = {
        "vocab_size": tokenizer.vocab_size,
        "block": config.block,
        "library_digest": contracts.json_file(concepts, "library.json")["digest"],
        **_counts(spans),
        "shards": [shard.model_dump() for shard in written],
    }
    (tokens / "tokens.json").write_text(json.dumps(facts, indent=1))
    return contracts.write_batches([table(spans)], tokens, contracts.TOKENS)


def _tokenizer(documents: Path, path: Path, config: PackConfig) -> Tokenizer:
    if not config.given_tokenizer:
        texts = _training_texts(documents, config.tokenizer_bytes)
        return tokenizers.train(texts, config.vocab_size, path)
    given = tokenizers.adopt(Path(config.given_tokenizer), path)
    if given.vocab_size != config.vocab_size:
        raise ValueError(
            f"vocab_size is {config.vocab_size}, but {config.given_tokenizer} has "
            f"{given.vocab_size} tokens, the special ones included; write that number"
        )
    return given


def _training_texts(documents: Path, max_bytes: int) -> Iterator[str]:
    n_bytes = 0
    for batch in contracts.stream(documents, contracts.DOCUMENTS, rows=_ROWS):
        for split, text in zip(batch["split"], batch["text"], strict=True):
            if split == "train" and n_bytes < max_bytes:
                n_bytes += len(text.encode())
                yield text


def _pieces(documents: Path, chunks: Path, tokenizer: Tokenizer) -> Iterator[Piece]:
    """Chunks in order, each knowing whether it opens or closes its document."""
    waiting: Piece | None = None
    for batch in chunk_texts.texts(documents, chunks, rows=_ROWS):
        for row, ids in enumerate(tokenizer.encode_batch(batch["text"])):
            opens = waiting is None or waiting.doc_id != batch["doc_id"][row]
            if waiting is not None:
                yield waiting.closing() if opens else waiting
            waiting = Piece(
                chunk_id=batch["chunk_id"][row],
                doc_id=batch["doc_id"][row],
                split=batch["split"][row],
                domain=batch["domain"][row],
                source=batch["source"][row],
                ids=ids,
                n_bytes=len(batch["text"][row].encode()),
                opens_document=opens,
            )
    if waiting is not None:
        yield waiting.closing()


def _counts(spans: Sequence[Span]) -> dict[str, object]:
    n_tokens = Counter[str]()
    n_bytes: dict[str, Counter[str]] = defaultdict(Counter)
    for span in spans:
        n_tokens[span.split] += span.n_tokens
        if span.chunk_id >= 0:
            n_bytes[span.split][span.domain] += span.n_bytes
    ends = np.cumsum([n_tokens[split] for split in _SPLITS]).tolist()
    chunked = [span for span in spans if span.chunk_id >= 0]
    return {
        "splits": {
            split: [end - n_tokens[split], end] for split, end in zip(_SPLITS, ends, strict=True)
        },
        "chunks": {split: _chunks(chunked, split) for split in _SPLITS},
        "bytes": n_bytes,
        "n_documents": len({span.doc_id for span in chunked}),
        "n_chunks": len(chunked),
        "n_unlabelled_chunks": sum(not span.concept_ids for span in chunked),
        "n_labels": sum(len(span.concept_ids) for span in chunked),
    }


def _chunks(chunked: Sequence[Span], split: str) -> dict[str, int]:
    lengths = [span.n_tokens for span in chunked if span.split == split]
    return {"n": len(lengths), "tokens": sum(lengths)}
