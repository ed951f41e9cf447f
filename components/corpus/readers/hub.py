"""A dataset that the `datasets` library loads: by name from a hub, or a folder on this machine."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from components.corpus.config import HubSource
from components.corpus.readers.folder import CorpusError
from components.corpus.record import Record, Refusal


def read(source: HubSource) -> Iterator[Record | Refusal]:
    """Its rows, streamed in order: nothing is kept on disk beyond what is read."""
    for number, row in enumerate(_rows(source)):
        if source.text_column not in row:
            raise CorpusError(
                f"{_named(source)} has no column {source.text_column!r}; it has {sorted(row)}. "
                f"Name one of them as text_column of the source"
            )
        locator = f"{source.subset or 'default'}/{source.split}:{number}"
        text = row[source.text_column]
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


def _rows(source: HubSource) -> Iterator[Mapping[str, object]]:
    import datasets  # a second to import, and only this reader needs it

    try:
        rows = datasets.load_dataset(
            source.name,
            source.subset or None,
            split=source.split,
            revision=source.revision or None,
            streaming=True,
        )
    except OSError as error:  # no network, no such name, or terms that were not accepted
        raise CorpusError(
            f"{_named(source)} cannot be reached: {error}. With a network, see that "
            f"{source.name} exists on the hub; where it asks for terms, "
            f"accept them there and set HF_TOKEN. Without one, fetch it elsewhere with "
            f"`hf download {source.name} --repo-type dataset --local-dir FOLDER` and put FOLDER as "
            f"the name of the source"
        ) from error
    except (ValueError, RuntimeError) as error:  # no such subset or split; a loading script
        raise CorpusError(
            f"{_named(source)} cannot be read: {error}. Change subset or split of the source, or "
            f"name a data set of plain files: those with a loading script are not run"
        ) from error
    yield from rows


def _named(source: HubSource) -> str:
    subset = f" (subset {source.subset})" if source.subset else ""
    return f"the data set {source.name}{subset}, split {source.split},"
