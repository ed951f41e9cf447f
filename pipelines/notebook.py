"""Execute a notebook on a run folder: committed without outputs, read with them."""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

MEET_A_DOCUMENT = Path(__file__).parent.parent / "notebooks" / "1_meet_a_document.ipynb"
SECONDS_A_CELL = 120


def execute(notebook: Path, run_folder: Path, written: Path) -> Path:
    """Run every cell with CLEARSTORY_RUN set to `run_folder`, and write the executed copy.

    Raises nbclient's CellExecutionError, with the cell and its traceback, where one fails.
    """
    content = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    root = Path(__file__).resolve().parent.parent
    environment = {
        **os.environ,
        "CLEARSTORY_RUN": str(run_folder.resolve()),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(root),
    }
    with tempfile.TemporaryDirectory() as folder:  # the kernel's sockets are files, not open ports
        sockets = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})
        client = NotebookClient(
            content, timeout=SECONDS_A_CELL, kernel_name="python3", config=sockets
        )
        client.execute(env=environment, cwd=str(root))
    nbformat.write(content, written)  # type: ignore[no-untyped-call]
    return written
