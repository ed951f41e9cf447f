"""Set-up: build DeepSpeed's operator once, inside the virtual environment.

    python -m components.warm

The first rank that ever starts builds it with the C++ compiler; without this, that is a test's or
a run's first stage.
"""

import tempfile
import time
from pathlib import Path

from components import launch
from components.launch import RanksConfig
from model.events import ignore

_ONE = RanksConfig(ranks=1, threads=1)


def warm() -> float:
    """Start one rank that joins a world and leaves. Returns the seconds it took."""
    began = time.monotonic()
    unlock(Path(launch.environment(_ONE)["TORCH_EXTENSIONS_DIR"]))
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        job.write_text("{}")
        launch.run("model.zero", job, _ONE, ignore)
    return time.monotonic() - began


def unlock(extensions: Path) -> None:
    """Remove the locks of builds that were killed: all who come later would wait for ever.

    Only set-up may do so, which builds before anybody else is there.
    """
    for lock in extensions.glob("*/lock"):
        lock.unlink()


if __name__ == "__main__":
    print(f"DeepSpeed's operator is built ({warm():.0f} s)")
