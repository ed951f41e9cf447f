"""Concepts by what a person types, and by what they resemble.

    search       words in names, tags and descriptions, together with closeness in meaning
    nearest_to   the concepts most like one of the library

Shape suffixes: K concepts   D width of a vector
"""

import difflib
from dataclasses import dataclass
from typing import Literal

from components import embedding, nearest
from components.catalogue.history import origin
from components.embedding import Embedder
from components.library import Concept, Library

Place = Literal["name", "tag", "description", ""]

_WORTH: dict[Place, float] = {"name": 0.5, "tag": 0.25, "description": 0.25, "": 0.0}
"""What literal words add to a cosine: a name that holds them comes before one that is only near."""


@dataclass(frozen=True)
class Hit:
    """A concept that was found: where the words stand in it, and how near it is in meaning."""

    concept: Concept
    place: Place
    cosine: float | None
    """Of the text and the concept's tags; None where no encoder was asked."""

    @property
    def score(self) -> float:
        """The cosine, and half a point for words in the name, a quarter for words elsewhere."""
        return (self.cosine or 0.0) + _WORTH[self.place]


def search(library: Library, text: str, n: int, encoder: Embedder | None) -> list[Hit]:
    """The n best concepts, best first; without an encoder only those that hold the words.

    Raises ValueError for a text of blanks.
    """
    words = text.strip().casefold()
    if not words:
        raise ValueError("there is nothing to search for; give a word or a phrase")
    places = [_place(concept, words) for concept in library.concepts]
    if encoder is None:
        hits = [
            Hit(concept, place, None)
            for concept, place in zip(library.concepts, places, strict=True)
            if place
        ]
    else:
        cosine_K = library.centroids_KD @ encoder.embed([text.strip()])[0]
        hits = [
            Hit(concept, place, float(cosine))
            for concept, place, cosine in zip(library.concepts, places, cosine_K, strict=True)
        ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.concept.concept_id))[:n]


def encoder_of(library: Library) -> Embedder:
    """The encoder whose space the library lies in. Raises ValueError if it is another by now."""
    made = origin(library)
    try:
        encoder = embedding.load(made.encoder)
    except OSError as error:
        raise ValueError(
            f"the library's encoder {made.encoder} cannot be opened ({error}); put it back, or "
            f"search by words alone"
        ) from error
    if encoder.digest != made.encoder_digest:
        raise ValueError(
            f"the library was made with {made.encoder} of digest {made.encoder_digest[:16]}, here "
            f"it is {encoder.digest[:16]}: vectors of the two cannot be compared; search by words "
            f"alone, or get the encoder of that digest"
        )
    return encoder


def nearest_to(library: Library, concept: Concept, n: int) -> list[tuple[Concept, float]]:
    """The n concepts whose centroids are most like that of `concept`, with the cosine."""
    row = concept.concept_id
    found = nearest.search(
        library.centroids_KD, library.centroids_KD[row : row + 1], min(n + 1, len(library.concepts))
    )
    near = zip(found.rows_QK[0].tolist(), found.cosine_QK[0].tolist(), strict=True)
    return [(library.concepts[other], cosine) for other, cosine in near if other != row][:n]


def by_id_or_name(library: Library, given: str) -> Concept:
    """The concept a person means. Raises ValueError with the names that are like it."""
    if given.strip().isdigit():
        row = int(given)
        if row < len(library.concepts):
            return library.concepts[row]
        raise ValueError(f"there is no concept {row}; ids are 0 to {len(library.concepts) - 1}")
    found = library.named(given)
    if found is None:
        names = {concept.name.casefold(): concept.name for concept in library.concepts}
        like = difflib.get_close_matches(given.strip().casefold(), names, n=3)
        hint = f"Did you mean {' or '.join(names[each] for each in like)}?" if like else ""
        raise ValueError(
            f"there is no concept named {given!r}. "
            f"{hint or f'Look for it with: clearstory concepts search {given!r}'}"
        )
    return found


def _place(concept: Concept, words: str) -> Place:
    if words in concept.name.casefold():
        return "name"
    if any(words in tag.casefold() for tag in concept.members):
        return "tag"
    return "description" if words in concept.description.casefold() else ""
