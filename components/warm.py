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


def warm() -> float:
    """Start one rank that joins a world and leaves. Returns the seconds it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        job.write_text("{}")
        launch.run("model.zero", job, RanksConfig(ranks=1, threads=1), ignore)
    return time.monotonic() - began


if __name__ == "__main__":
    print(f"DeepSpeed's operator is built ({warm():.0f} s)")
