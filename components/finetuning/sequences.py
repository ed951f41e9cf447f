"""Conversations as a token stream: in each window one answer, and all that was said before it.

    prompt … | answer chunk <|endofchunk|> … <|eot_id|> | EOS to a whole block | padding

A conversation with several answers makes as many windows, all of one split. Only answers are chunks
of the span table, so only they carry concepts.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from components import annotators, contracts, embedding
from components.cutting import cut
from components.cutting_config import CutConfig
from components.finetuning.config import FinetuneConfig
from model import chat
from model.chat import Message
from model.tokenizer import Tokenizer

Row = dict[str, object]


@dataclass(frozen=True)
class Answer:
    """One answer with its prompt, and the concepts of its chunks (None: nobody labelled it)."""

    conversation_id: str
    source: str
    prompt: tuple[Message, ...]
    chunks: tuple[str, ...]
    n_wordpieces: tuple[int, ...]
    concepts: tuple[tuple[int, ...] | None, ...] = ()


@dataclass(frozen=True)
class Packed:
    """What became of the conversations."""

    n_train: int
    n_valid: int
    n_left_out: int
    """Answers that do not fit into a window with their prompts."""


def write_stream(
    messages: Path, annotator: Path | None, folder: Path, config: FinetuneConfig, *, block: int
) -> Packed:
    """Write a Tokens artifact beside the tokenizer already there. No annotator: no concepts."""
    tokenizer = Tokenizer(folder / "tokenizer.json")
    found = list(answers(messages, config.cutting))
    held_out = held_out_ids([each.conversation_id for each in found], config)
    found = [replace(each, concepts=(None,) * len(each.chunks)) for each in found]
    if annotator is not None:
        found = labelled(found, annotator, config.cutting)
    writer = _Writer(tokenizer, config.training.length, block)
    splits, counts = {}, {}
    for split in ("train", "valid"):
        first = len(writer.stream)
        inside = [
            each for each in found if (each.conversation_id in held_out) == (split != "train")
        ]
        counts[split] = sum(writer.add(each, split) for each in inside)
        splits[split] = [first, len(writer.stream)]
    packed = Packed(counts["train"], counts["valid"], len(found) - sum(counts.values()))
    _check(packed, writer, config, annotator)
    narrow = tokenizer.vocab_size <= 1 << 16
    np.save(folder / "stream.npy", np.array(writer.stream, np.uint16 if narrow else np.uint32))
    splits["test"] = [len(writer.stream)] * 2
    facts = {"vocab_size": tokenizer.vocab_size, "block": block, "splits": splits}
    (folder / "tokens.json").write_text(json.dumps(facts))
    contracts.write(writer.rows, folder, contracts.TOKENS)
    return packed


def answers(messages: Path, cutting: CutConfig) -> Iterator[Answer]:
    """Every turn of the assistant, cut into chunks."""
    word_pieces = embedding.word_pieces(cutting.encoder)
    for row in contracts.read(messages, contracts.MESSAGES).to_pylist():
        said = [Message(each["role"], each["content"]) for each in row["messages"]]
        for turn, message in enumerate(said):
            if message.role == chat.ASSISTANT:
                pieces = cut(message.content, word_pieces, cutting, is_code=False)
                yield Answer(
                    conversation_id=row["conversation_id"],
                    source=row["source"],
                    prompt=tuple(said[:turn]),
                    chunks=tuple(message.content[piece.start : piece.end] for piece in pieces),
                    n_wordpieces=tuple(piece.n_wordpieces for piece in pieces),
                )


def held_out_ids(conversation_ids: Sequence[str], config: FinetuneConfig) -> set[str]:
    """Conversations that are not trained on: by hash, so that more of them move none."""
    seed = config.training.seed
    ranked = sorted((_place(name, seed), name) for name in set(conversation_ids))
    n_held_out = sum(place < config.valid_share for place, _ in ranked)
    return {name for _, name in ranked[: max(1, n_held_out)]}


def labelled(found: Sequence[Answer], annotator: Path, cutting: CutConfig) -> list[Answer]:
    """The answers with the annotator's concepts; chunks too short to judge keep None."""
    embedder = embedding.load(cutting.encoder)
    _check_encoder(annotator, embedder)
    texts = [text for each in found for text in each.chunks]
    judged = annotators.load(annotator).label(embedder.embed(texts))
    rows = iter([tuple(concept for concept, _ in labels) for labels in judged])
    return [
        replace(each, concepts=_of_long_enough(list(islice(rows, len(each.chunks))), each, cutting))
        for each in found
    ]


def _of_long_enough(
    judged: Sequence[tuple[int, ...]], answer: Answer, cutting: CutConfig
) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(
        concepts if n_wordpieces >= cutting.min_wordpieces else None
        for concepts, n_wordpieces in zip(judged, answer.n_wordpieces, strict=True)
    )


class _Writer:
    """The stream and its span table, a window at a time."""

    def __init__(self, tokenizer: Tokenizer, length: int, block: int) -> None:
        self.stream: list[int] = []
        self.rows: list[Row] = []
        self._tokenizer, self._length, self._block = tokenizer, length, block

    def add(self, answer: Answer, split: str) -> bool:
        """Append a window; False where prompt and answer are longer than one."""
        prompt = chat.prompt(self._tokenizer, answer.prompt)
        chunks = chat.closed(self._tokenizer, answer.chunks)
        n_tokens = len(prompt) + sum(map(len, chunks))
        n_filled = -n_tokens % self._block
        if n_tokens + n_filled > self._length:
            return False
        chunks[-1] += [self._tokenizer.specials.eos_id] * n_filled
        nothing: Row = {"chunk_id": -1, "doc_id": "", "domain": "", "n_bytes": 0}
        self._span(prompt, nothing, split, answer.source, None)
        for text, ids, concepts in zip(answer.chunks, chunks, answer.concepts, strict=True):
            chunk: Row = {
                "chunk_id": len(self.rows), "doc_id": answer.conversation_id,
                "domain": "conversation", "n_bytes": len(text.encode()),
            }  # fmt: skip
            self._span(ids, chunk, split, answer.source, concepts)
        padding = [self._tokenizer.specials.pad_id] * (self._length - n_tokens - n_filled)
        self._span(padding, nothing, split, "", None)
        return True

    def _span(
        self, ids: list[int], chunk: Mapping[str, object], split: str, source: str,
        concepts: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        if not ids:
            return
        first = len(self.stream)
        self.stream += ids
        self.rows.append(
            {
                **chunk, "span_id": len(self.rows), "split": split, "source": source,
                "token_start": first, "token_end": len(self.stream),
                "labelled": concepts is not None, "concept_ids": list(concepts or ()),
            }
        )  # fmt: skip


def _place(name: str, seed: int) -> float:
    """A conversation's place in [0, 1)."""
    return int(hashlib.sha256(f"{seed}\0{name}".encode()).hexdigest()[:16], 16) / 16**16


def _check(packed: Packed, writer: _Writer, config: FinetuneConfig, annotator: Path | None) -> None:
    if not (packed.n_train and packed.n_valid):
        raise ValueError(
            f"{packed.n_train} answers to train on and {packed.n_valid} held out fit into "
            f"{config.training.length} tokens with their prompts, {packed.n_left_out} do not; give "
            f"more or shorter conversations, or raise training.length"
        )
    if annotator is not None and not any(
        row["labelled"] for row in writer.rows if row["split"] == "valid"
    ):
        raise ValueError(
            f"no chunk of the {packed.n_valid} held-out answers has the "
            f"{config.cutting.min_wordpieces} word pieces that labels take; give longer answers or "
            f"lower cutting.min_wordpieces"
        )


def _check_encoder(annotator: Path, embedder: embedding.Embedder) -> None:
    facts = contracts.json_file(annotator, annotators.FACTS_FILE)
    if facts["encoder_digest"] != embedder.digest:
        raise contracts.ContractError(
            f"{annotator} was trained on vectors of {facts['encoder']} "
            f"({str(facts['encoder_digest'])[:12]}…), but cutting.encoder is {embedder.name} "
            f"({embedder.digest[:12]}…); set it to the annotator's"
        )
