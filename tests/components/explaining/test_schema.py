"""The JSON of explanations is an interface: no field changes without a new version of it.

To move it on purpose: python -m tests.components.explaining.test_schema
"""

from pathlib import Path

from components.explaining.schema import Explanation, GenerateRequest, Steered, Wish

GOLDEN = Path(__file__).parents[2] / "golden" / "explained-schema.txt"


def listing():
    """One line a class: its fields, in order."""
    found = {}
    for top in (GenerateRequest, Wish, Explanation, Steered):
        schema = top.model_json_schema(mode="serialization")
        for name, each in {**schema.get("$defs", {}), top.__name__: schema}.items():
            found[name] = " ".join(each["properties"])
    return "".join(f"{name}: {fields}\n" for name, fields in sorted(found.items()))


def test_no_field_of_the_documents_changes_unnoticed():
    assert listing() == GOLDEN.read_text()


if __name__ == "__main__":
    GOLDEN.write_text(listing())
