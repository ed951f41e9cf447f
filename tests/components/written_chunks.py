"""23 chunks of two documents with vectors, and an annotator of five concepts, as artifacts."""

import json
from pathlib import Path

import numpy as np

from components import annotators, contracts
from components.annotators import Annotator, Calibration, Linear

N, D, K = 23, 6, 5


def write_chunks(root: Path) -> dict[str, Path]:
    """What labelling reads, below `root`, in the order in which it does."""
    folders = {name: root / name for name in ("documents", "chunks", "vectors", "annotator")}
    for folder in folders.values():
        folder.mkdir()
    _write_text(folders["documents"], folders["chunks"])
    draw = np.random.default_rng(0)
    np.save(folders["vectors"] / "vectors.npy", draw.normal(size=(N, D)).astype(np.float16))
    (folders["vectors"] / "encoder.json").write_text(json.dumps({"name": "e", "digest": "e1"}))
    contracts.seal(folders["vectors"], contracts.VECTORS, rows=N)
    scorer = Linear(draw.normal(size=(K, D)).astype(np.float32), np.zeros(K, np.float32))
    calibration = Calibration(np.full(K, 1.0, np.float32), np.ones(K, np.float32))
    facts = {"encoder": "e", "encoder_digest": "e1", "library_digest": "l1"}
    made = Annotator(scorer, calibration, max_labels=3)
    annotators.save(made, folders["annotator"], "cards", facts)
    return folders


def _write_text(documents: Path, chunks: Path) -> None:
    empty = dict.fromkeys(contracts.DOCUMENTS.schema.names, "")
    texts = {"d0": "".join(f"chunk {row:02}." for row in range(20)), "d1": "one two three "}
    rows = ({**empty, "doc_id": name, "text": text} for name, text in texts.items())
    contracts.write(rows, documents, contracts.DOCUMENTS)
    bounds = [("d0", 9 * row, 9 * row + 9) for row in range(20)]
    bounds += [("d1", 0, 4), ("d1", 4, 8), ("d1", 8, 14)]
    pieces = (
        {
            "chunk_id": row, "doc_id": name, "start": start, "end": end, "n_wordpieces": 3,
            "status": "ok",
        }
        for row, (name, start, end) in enumerate(bounds)
    )  # fmt: skip
    contracts.write(pieces, chunks, contracts.CHUNKS)
