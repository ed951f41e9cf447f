"""Vectors of 23 chunks, and an annotator of five concepts, as artifacts."""

import json
from pathlib import Path

import numpy as np

from components import annotators, contracts
from components.annotators import Annotator, Calibration, Linear

N, D, K = 23, 6, 5


def write_chunks(root: Path) -> dict[str, Path]:
    """What labelling reads, below `root`, in the order in which it does."""
    folders = {name: root / name for name in ("vectors", "annotator")}
    for folder in folders.values():
        folder.mkdir()
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
