"""Before any content: the columns of the contract, with its types, and at least one row.

Without them the other rules cannot be evaluated, so a broken shape ends the check.
"""

import pandas as pd
import pyarrow as pa

from components.gates.rules import Between, Equal, Fact, Sheet, facts

_ABSENT = "–"


def sheets(table: pa.Table, schema: pa.Schema) -> list[Sheet]:
    """One row a column, found or expected; and the number of rows."""
    expected = {field.name: str(field.type) for field in schema}
    found = {
        field.name: expected[field.name] if _same(field, schema) else str(field.type)
        for field in table.schema
    }
    names = [*expected, *(name for name in found if name not in expected)]
    frame = pd.DataFrame(
        {
            "column": names,
            "expected_type": [expected.get(name, _ABSENT) for name in names],
            # A column on one side only breaks the rule about columns, not the one about types.
            "type": [
                found[name] if name in found and name in expected else expected.get(name, _ABSENT)
                for name in names
            ],
            "missing_columns": [int(name not in found) for name in names],
            "unexpected_columns": [int(name not in expected) for name in names],
        }
    )
    rules = (
        Between("columns_present", "missing_columns", 0, 0),
        Between("columns_expected", "unexpected_columns", 0, 0),
        Equal("column_types", "type", "expected_type"),
    )
    return [
        Sheet("columns", frame, ("column",), rules),
        facts([Fact("n_rows", table.num_rows, low=1)]),
    ]


def _same(field: pa.Field, schema: pa.Schema) -> bool:
    """Types are compared as types: Parquet renames the items of a list, which means nothing."""
    return field.name in schema.names and field.type == schema.field(field.name).type
