"""The contracts as a Markdown table, made from `components/contracts.py`.

python docs/contracts_table.py      rewrites the table in docs/architecture.md
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from components import contracts

PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- contracts: begin -->", "<!-- contracts: end -->"


def table() -> str:
    """One row a contract: who writes it, its columns with types, its further files."""
    lines = ["| artifact | written by | columns | files |", "|---|---|---|---|"]
    for contract in contracts.ALL.values():
        columns = " · ".join(f"`{field.name}` {field.type}" for field in contract.schema or [])
        files = " · ".join(f"`{name}`" for name in contract.files)
        lines.append(
            f"| `{contract}` | {contract.written_by} | {columns or '–'} | {files or '–'} |"
        )
    return "\n".join(lines)


def with_table(page: str) -> str:
    """The page with its table replaced by the present one."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
