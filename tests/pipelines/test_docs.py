"""Documents that speak of the code are true of it."""

import re
import sys
from pathlib import Path

from components.run_folder import RunFolder

DOCS = Path(__file__).parents[2] / "docs"


def test_the_walk_of_one_document_is_true_of_a_run(walk):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "walk.md").read_text(), re.DOTALL)
    assert len(blocks) > 8
    names = {"run": RunFolder(walk.folder)}
    for block in blocks:
        exec(compile(block, "walk.md", "exec"), names)


def test_the_contracts_table_is_the_one_of_the_code():
    sys.path.insert(0, str(DOCS))
    import contracts_table

    page = (DOCS / "architecture.md").read_text()
    assert contracts_table.with_table(page) == page


def test_the_tables_of_recipes_are_those_of_the_code():
    sys.path.insert(0, str(DOCS))
    import recipes_table

    page = (DOCS / "recipes.md").read_text()
    assert recipes_table.with_tables(page) == page
