"""How far a cosine agrees with people, and the curve that judges use (components/calibration.py).

    python -m benchmarks.judging GOLD.parquet … [--encoder minilm-int8] [--write]

A gold set has columns `doc_id`, `text` and `labels` (names of concepts). Of each document one label
is drawn and one concept that it was not given: half of the pairs are right. One half of the
documents, by the hash of their names, is fitted to, the other measured. The curve is fitted to the
first gold set and measured on every one: what it says of the others is how far it carries to other
text and other names. `--write` puts it into `calibrations.json`.

Labels are incomplete, so some pairs that count as wrong are right: the AUC is a lower bound.

Shape suffixes: N pairs   D width of a vector
"""

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from components import calibration, embedding
from components.calibration import Calibration, Labelled
from components.embedding import Embedder
from components.scores import Score

_MOST_DOCUMENTS = 1_000
_SEED = 0


@dataclass(frozen=True)
class Pairs:
    """Pairs of one gold set: those to fit to, those to measure on."""

    name: str
    to_fit: Labelled
    held_out: Labelled


def pairs_of(gold: Path, encoder: Embedder, n_documents: int = _MOST_DOCUMENTS) -> Pairs:
    """Two pairs a document, one right and one wrong, of documents that come first by hash."""
    table = pq.read_table(gold, columns=["doc_id", "text", "labels"]).to_pylist()
    vocabulary = sorted({name for row in table for name in row["labels"]})
    rows = sorted((row for row in table if row["labels"]), key=lambda row: _place(row["doc_id"]))
    rows = rows[:n_documents]
    draw = np.random.default_rng(_SEED)
    right = [row["labels"][draw.integers(len(row["labels"]))] for row in rows]
    wrong = []
    for row in rows:
        others = sorted({*vocabulary} - {*row["labels"]})
        wrong.append(others[draw.integers(len(others))])
    text_ND = encoder.embed([row["text"] for row in rows])
    vector_of = dict(zip(vocabulary, encoder.embed(vocabulary), strict=True))
    cosine = [
        (text_ND * np.stack([vector_of[name] for name in names])).sum(axis=1).astype(np.float64)
        for names in (right, wrong)
    ]
    half = len(rows) // 2
    return Pairs(gold.parent.name, _labelled(cosine, 0, half), _labelled(cosine, half, len(rows)))


def report(found: Calibration, gold: list[Pairs], encoder: Embedder) -> list[str]:
    """Lines for a person, one a gold set."""
    lines = [
        f"{encoder.name}: probability = 1 / (1 + exp(-({found.slope:.2f} cosine "
        f"{found.intercept:+.2f}))), fitted to {found.n_pairs_fitted} pairs of {found.fitted_on}",
    ]
    for each in gold:
        probability_N = found.probability(each.held_out.cosine_N)
        auc = calibration.ranking(probability_N, each.held_out)
        error = calibration.error(probability_N, each.held_out)
        lines.append(f"  {each.name}: AUC {_shown(auc)}, calibration error {_shown(error)}")
    return lines


def _labelled(cosine: list[np.ndarray], first: int, last: int) -> Labelled:
    right_N, wrong_N = (each[first:last] for each in cosine)
    documents = np.arange(last - first)
    return Labelled(
        np.concatenate([right_N, wrong_N]),
        np.repeat([True, False], last - first),
        np.concatenate([documents, documents]),
    )


def _shown(score: Score) -> str:
    return f"{score.value:.3f} ({score.low:.3f}–{score.high:.3f}, n = {score.n} {score.n_of})"


def _place(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("gold", nargs="+", type=Path)
    asked.add_argument("--encoder", default=embedding.MINILM)
    asked.add_argument("--write", action="store_true")
    options = asked.parse_args()
    encoder = embedding.load(options.encoder)
    gold = [pairs_of(path, encoder) for path in options.gold]
    first, *others = gold
    elsewhere = {each.name: each.held_out for each in others}
    found = calibration.fit(first.to_fit, first.held_out, elsewhere, encoder, first.name)
    print("\n".join(report(found, gold, encoder)))
    if options.write:
        known = json.loads(calibration.FILE.read_text()) if calibration.FILE.exists() else {}
        known[encoder.name] = found.model_dump()
        text = json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False)
        calibration.FILE.write_text(text + "\n")


if __name__ == "__main__":
    main()
