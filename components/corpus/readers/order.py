"""An order whose first documents are a fair sample of all: by the hash of their names."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from components.corpus.record import hash_of

T = TypeVar("T")


def by_hash(items: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Items in the order of the hash of their names."""
    return sorted(items, key=lambda item: hash_of(name(item)))
