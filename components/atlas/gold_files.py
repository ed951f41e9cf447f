"""A gold set that a person brings: read, joined with the concepts, and refused where it is amiss.

    gold         text · labels[] (names or ids of concepts) · doc_id, if several texts are of one
    concepts     name · description · concept_id, if not their place in the file
    documents    text

Shape suffixes: N texts   K concepts
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from components.annotators import Integers
from components.atlas import tagged_sample
from components.atlas.gold import place

_SHOWN = 5


class GoldError(ValueError):
    """A file of a gold set cannot be used. The message says which, why, and what to do."""


@dataclass(frozen=True)
class GoldSet:
    """Texts, the concepts each carries, and texts of the corpus without labels."""

    texts: list[str]
    labels_NK: csr_array
    document_N: Integers
    """0 … G−1, in an order whose first ones are a fair sample of all."""

    documents: list[str]
    concept_ids: list[int]
    names: list[str]
    descriptions: list[str]


def read(concepts: Path, documents: Path, gold: Path) -> GoldSet:
    """The three files, joined. Raises GoldError."""
    described = _columns(concepts, ("name", "description"), ("concept_id",))
    labelled = _columns(gold, ("text", "labels"), ("doc_id",))
    _check_texts(labelled["text"], gold)
    corpus = _columns(documents, ("text",), ())["text"]
    _check_texts(corpus, documents)
    ids = described.get("concept_id", list(range(len(described["name"]))))
    doc_ids = labelled.get("doc_id", labelled["text"])
    ordered = sorted(set(doc_ids), key=lambda name: (place(str(name)), name))
    rank = {name: number for number, name in enumerate(ordered)}
    return GoldSet(
        texts=labelled["text"],
        labels_NK=_labels(labelled["labels"], ids, described["name"], gold, concepts),
        document_N=np.array([rank[name] for name in doc_ids], dtype=np.int64),
        documents=corpus,
        concept_ids=ids,
        names=described["name"],
        descriptions=[text or "" for text in described["description"]],
    )


def _columns(path: Path, needed: Sequence[str], optional: Sequence[str]) -> dict[str, list]:  # type: ignore[type-arg]
    """These columns as lists; the optional ones where the file has them."""
    if not path.is_file():
        raise GoldError(f"{path} is not there; give a parquet file with columns {list(needed)}")
    try:
        there = pq.read_schema(path).names
    except pa.ArrowInvalid as error:
        raise GoldError(f"{path} is no parquet file: {error}") from None
    lacking = [name for name in needed if name not in there]
    if lacking:
        raise GoldError(f"{path} lacks the columns {lacking}; it has {there}")
    wanted = [*needed, *[name for name in optional if name in there]]
    columns = {name: pq.read_table(path, columns=[name])[name].to_pylist() for name in wanted}
    if not columns[needed[0]]:
        raise GoldError(f"{path} has no rows; there is nothing to measure with")
    return columns


def _check_texts(texts: list[str | None], path: Path) -> None:
    blank = [row for row, text in enumerate(texts) if not isinstance(text, str) or not text.strip()]
    if blank:
        raise GoldError(
            f"{path}: {len(blank)} of {len(texts)} texts are blank, the first in row {blank[0]}; "
            f"leave such rows out"
        )


def _labels(
    labels: list[list[str | int] | None], ids: list[int], names: list[str], gold: Path,
    concepts: Path,
) -> csr_array:  # fmt: skip
    """Which concepts each text carries; a label is an id where it is a number, else a name."""
    for what, values in (("id", ids), ("name", names)):
        twice = [value for value, n in Counter(values).items() if n > 1]
        if twice:
            raise GoldError(
                f"{concepts}: {len(twice)} concepts share their {what}, such as {twice[:_SHOWN]}; "
                f"a label could mean either, so make them differ"
            )
    concept_of: dict[str | int, int] = {name: k for k, name in enumerate(names)}
    concept_of.update({concept_id: k for k, concept_id in enumerate(ids)})
    pairs = [(row, label) for row, said in enumerate(labels) for label in said or ()]
    if not pairs:
        raise GoldError(f"{gold}: no text has a label; there is nothing to measure with")
    unknown = Counter(label for _, label in pairs if label not in concept_of)
    if unknown:
        shown = ", ".join(repr(label) for label, _ in unknown.most_common(_SHOWN))
        raise GoldError(
            f"{gold}: {len(unknown)} labels are no concept of {concepts}, such as {shown}. Labels "
            f"are names as they are written there, or ids; add the concepts or drop the labels"
        )
    row_L = np.array([row for row, _ in pairs], dtype=np.int64)
    concept_L = np.array([concept_of[label] for _, label in pairs], dtype=np.int64)
    return tagged_sample.table_of(row_L, concept_L, len(labels), len(names))
