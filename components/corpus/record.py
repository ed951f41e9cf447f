"""What a reader yields: a text with its provenance, or the reason why there is none."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """A text as it was found. `locator` finds it again inside its source."""

    source: str
    source_version: str
    locator: str
    domain: str
    licence: str
    title: str
    text: str

    @property
    def doc_id(self) -> str:
        """Stable: a function of the source and the place in it, not of what else was read."""
        return hash_of(f"{self.source}\0{self.locator}")


@dataclass(frozen=True)
class Refusal:
    """Something that a reader found and could not read."""

    locator: str
    reason: str


def hash_of(text: str) -> str:
    """Sixteen hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
