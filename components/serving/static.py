"""The page's own files, read once from the package: no request ever names a path on disk."""

from dataclasses import dataclass
from importlib import resources

from components.page_style import PALETTE, PICTURES

INDEX = "index.html"
_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """One file and what it is."""

    content: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """Every file of the page by its name; colours are those of all our pages."""
    folder = resources.files("components.serving") / "page"
    found = {
        file.name: PageFile(file.read_bytes(), _KINDS[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
    }
    palette = PageFile((PALETTE + PICTURES).encode(), _KINDS["css"])
    return {**found, "palette.css": palette}
