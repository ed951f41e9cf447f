"""Conversations for fine-tuning: questions made of articles, or anybody's (method: post-training).

    encyclopedia   the user asks about a title or its description, the assistant answers the extract
    jsonl          {"messages": [{"role": "user", "content": "…"}, …]} a line

A conversation is one system message at most, then user and assistant in turn, the assistant last.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from components import contracts, fetch
from components.corpus.clean import cleaned
from components.corpus.config import (
    ConversationSource,
    ConverseConfig,
    EncyclopediaConversations,
    JsonlConversations,
)
from components.corpus.readers import encyclopedia
from components.corpus.readers.encyclopedia import Article
from components.corpus.readers.folder import CorpusError
from components.corpus.record import hash_of

Message = dict[str, str]

ROLES = ("system", "user", "assistant")

_ABOUT_TITLE = (
    "What is {title}?",
    "Tell me about {title}.",
    "Explain {title} in a few sentences.",
    "I would like to know more about {title}.",
)
_ABOUT_DESCRIPTION = (
    "{title} ({description}): what should I know about it?",
    "Write the opening of an encyclopedia article on {title}, {description}.",
    "I know {title} as: {description}. Can you say more?",
)


def converse(messages: Path, config: ConverseConfig) -> int:
    """Write the conversations of all sources, by id. Returns how many there are."""
    fetch.need(config.packages)
    rows: dict[str, dict[str, object]] = {}
    for source in config.sources:
        for row in _read(source, config.seed):
            name = str(row["conversation_id"])
            if name in rows:
                raise CorpusError(
                    f"conversation {name} of {row['source']} is there twice (first in "
                    f"{rows[name]['source']}); remove one, or give them ids of their own"
                )
            rows[name] = row
    ordered = (rows[name] for name in sorted(rows))
    return contracts.write(ordered, messages, contracts.MESSAGES)


def fault_of(messages: Sequence[Message]) -> str:
    """What keeps messages from being a conversation; empty where nothing does."""
    roles = [message["role"] for message in messages]
    if strangers := sorted(set(roles) - set(ROLES)):
        return f"role {strangers[0]!r} is none of {', '.join(ROLES)}"
    turns = roles[1:] if roles[:1] == ["system"] else roles
    for place, role in enumerate(turns):
        wanted = ("user", "assistant")[place % 2]
        if role != wanted:
            return f"message {place + len(roles) - len(turns)} is of {role}, not of {wanted}"
    if not turns or turns[-1] != "assistant":
        return "the assistant does not have the last word"
    for place, message in enumerate(messages):
        if not message["content"].strip():
            return f"message {place} is blank"
    return ""


def _read(source: ConversationSource, seed: int) -> Iterator[dict[str, object]]:
    rows = _articles(source, seed) if source.kind == "encyclopedia" else _lines(source)
    for count, row in enumerate(rows):
        if count == source.max_conversations:
            return
        yield row


def _articles(source: EncyclopediaConversations, seed: int) -> Iterator[dict[str, object]]:
    package = encyclopedia.PACKAGE
    for article in islice(encyclopedia.articles(), source.skip, None):
        answer = cleaned(article.extract).strip()
        if answer:
            name = hash_of(f"{package.name}\0{article.locator}")
            yield {
                "conversation_id": name,
                "messages": [
                    {"role": "user", "content": question_about(article, f"{seed}\0{name}")},
                    {"role": "assistant", "content": answer},
                ],
                "source": package.name,
                "licence": package.licence,
            }


def question_about(article: Article, name: str) -> str:
    """One of a few wordings, by the hash of `name`; those with a description where there is one."""
    wordings = _ABOUT_TITLE + (_ABOUT_DESCRIPTION if article.description else ())
    chosen = wordings[int(hash_of(name), 16) % len(wordings)]
    said = cleaned(chosen.format(title=article.title, description=article.description))
    return said.strip()


def _lines(source: JsonlConversations) -> Iterator[dict[str, object]]:
    path = Path(source.path)
    if not path.is_file():
        raise CorpusError(
            f"{path} is not a file; name one with a conversation in JSON on each line"
        )
    content = path.read_bytes()
    if source.digest and hashlib.sha256(content).hexdigest() != source.digest:
        raise CorpusError(
            f"{path} changed since this run was set up; start the run again, so that it says which "
            f"conversations it read"
        )
    n_read = 0
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            n_read += 1
            yield _conversation(line, f"{path}:{number}", source)
    if not n_read:
        raise CorpusError(f"{path} holds no conversation; write one in JSON on each line")


def _conversation(line: bytes, place: str, source: JsonlConversations) -> dict[str, object]:
    way_out = 'write {"messages": [{"role": "user", "content": "…"}, …]} on one line'
    try:
        row = json.loads(line)
    except ValueError as error:
        raise CorpusError(f"{place} is not JSON ({error}): {_shown(line)}; {way_out}") from error
    messages = row.get("messages") if isinstance(row, dict) else None
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise CorpusError(
            f"{place} has no messages of a role and a content, both text, and nothing else: "
            f"{_shown(line)}; {way_out}"
        )
    if fault := fault_of(messages):
        raise CorpusError(
            f"{place} is no conversation: {fault}, in {_shown(line)}; after one system message at "
            f"most, let user and assistant speak in turn, the assistant last"
        )
    told = json.dumps(messages, ensure_ascii=False)
    return {
        "conversation_id": str(row.get("conversation_id") or hash_of(told)),
        "messages": messages,
        "source": str(row.get("source") or Path(source.path).stem),
        "licence": str(row.get("licence") or source.licence),
    }


def _is_message(found: object) -> bool:
    return (
        isinstance(found, dict)
        and found.keys() == {"role", "content"}
        and all(isinstance(value, str) for value in found.values())
    )


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return text if len(text) <= 120 else f"{text[:119]}…"
