"""A dataset that the `datasets` library loads: by name from a hub, or a folder on this machine."""

from collections.abc import Iterator
from pathlib import Path

from components.corpus.config import HubSource
from components.corpus.record import Record, Refusal


def read(source: HubSource) -> Iterator[Record | Refusal]:
    """Its rows, streamed in order: nothing is kept on disk beyond what is read."""
    import datasets  # a second to import, and only this reader needs it

    rows = datasets.load_dataset(
        source.name,
        source.subset or None,
        split=source.split,
        revision=source.revision or None,
        streaming=True,
    )
    for number, row in enumerate(rows):
        locator = f"{source.subset or 'default'}/{source.split}:{number}"
        text = row.get(source.text_column)
        if isinstance(text, str):
            yield Record(
                source=Path(source.name).name if Path(source.name).is_dir() else source.name,
                source_version=source.revision or "newest",
                locator=locator,
                domain=source.domain,
                licence=source.licence,
                title=str(row.get("title") or locator),
                text=text,
            )
        else:
            yield Refusal(locator, "no_text")
