"""Every test that the paper map names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_of_the_paper_map_exists():
    source = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"def (test_\w+)", source))
    named = re.findall(r"`(test_\w+)(…?)`", (ROOT / "docs" / "paper-map.md").read_text())
    assert len(named) > 60
    missing = [
        name for name, cut in named
        if not any(found == name or (cut and found.startswith(name)) for found in defined)
    ]  # fmt: skip
    assert missing == []
