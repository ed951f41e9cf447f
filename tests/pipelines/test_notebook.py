"""Notebooks are committed without outputs, and executed on the run folder they are given."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from pipelines.notebook import MEET_A_DOCUMENT, execute


def _notebook(path: Path, source: str) -> Path:
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    return path


def test_the_notebook_is_committed_without_outputs():
    cells = json.loads(MEET_A_DOCUMENT.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_the_notebook_has_a_parameter_cell_and_names_no_folder_of_its_own():
    cells = json.loads(MEET_A_DOCUMENT.read_text())["cells"]
    (parameters,) = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
    assert "CLEARSTORY_RUN" in "".join(parameters["source"])


def test_a_notebook_sees_the_run_and_keeps_its_outputs_in_the_copy(tmp_path):
    notebook = _notebook(tmp_path / "in.ipynb", "import os\nprint(os.environ['CLEARSTORY_RUN'])")
    execute(notebook, tmp_path / "run", tmp_path / "out.ipynb")
    (cell,) = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert cell.outputs[0].text.strip() == str(tmp_path / "run")
    assert nbformat.read(notebook, as_version=4).cells[0].outputs == []


def test_the_notebook_meets_a_document_of_the_walk(walk, tmp_path):
    written = execute(MEET_A_DOCUMENT, walk.folder, tmp_path / "out.ipynb")
    cells = nbformat.read(written, as_version=4).cells
    shown = [cell for cell in cells if cell.cell_type == "code" and cell.outputs]
    assert len(shown) > 5


def test_a_cell_that_fails_stops_with_its_own_traceback(tmp_path):
    notebook = _notebook(tmp_path / "in.ipynb", "raise KeyError('the reason')")
    with pytest.raises(CellExecutionError, match="the reason"):
        execute(notebook, tmp_path, tmp_path / "out.ipynb")
    assert not (tmp_path / "out.ipynb").exists()
