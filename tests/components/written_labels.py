"""Labels of a few chunks, written as an artifact."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from components import contracts


def write_labels(
    rows: Iterable[Mapping[str, object]], folder: Path, library_digest: str = "made-up"
) -> int:
    """Write rows and what Labels@1 says beside them; the number of rows."""
    facts = {"library_digest": library_digest, "annotator_digest": "made-up", "n_chunks": 0}
    (folder / "labels.json").write_text(json.dumps(facts))
    return contracts.write(rows, folder, contracts.LABELS)
