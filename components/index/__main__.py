"""Add the training chunks of another corpus to an index, from the command line.

    python -m components.index --index INDEX --documents DOCUMENTS --chunks CHUNKS \
        --vectors VECTORS --out LARGER

The vectors must be of the index's own encoder; folders are artifacts, as a run leaves them.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from components.contracts import ContractError
from components.index.adding import add
from components.nearest_config import LayoutConfig


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0, or 1 for what a person can put right."""
    parser = argparse.ArgumentParser(
        prog="python -m components.index", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for name, said in (
        ("index", "the index that is added to; it stays as it is"),
        ("documents", "the new corpus"),
        ("chunks", "its chunks"),
        ("vectors", "their vectors, by the encoder of the index"),
        ("out", "a folder for the larger index, which must not exist"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=said)
    asked = parser.parse_args(arguments)
    try:
        asked.out.mkdir(parents=True)
    except OSError as error:
        print(f"{asked.out} cannot be made ({error.strerror}); give another --out", file=sys.stderr)
        return 1
    try:
        n = add(
            asked.index, asked.documents, asked.chunks, asked.vectors, asked.out, LayoutConfig()
        )
    except (ContractError, ValueError, OSError) as error:
        shutil.rmtree(asked.out)  # what is half written would be in the way of the next try
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{asked.out}: {n:,} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
