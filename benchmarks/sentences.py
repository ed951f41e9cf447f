"""Real sentences, a million and more, out of Debian packages that hold text.

python -m benchmarks.sentences FOLDER      downloads the packages into FOLDER (apt-get download)

    *.html *.dict.dz    manuals, essays, dictionaries        data.noun …   what words mean
    set.mm              comments on theorems                 Translation-en   what packages do

Cut where a sentence or a clause ends; a text that occurs twice counts once, whatever its case.
"""

import gzip
import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from components import debian

PACKAGES = (
    "dict-gcide", "dict-foldoc", "dict-jargon", "wordnet-base", "anarchism", "metamath-databases",
    "python3.11-doc", "postgresql-doc-15", "python-statsmodels-doc", "python-scipy-doc",
    "python-sklearn-doc", "libreoffice-help-en-us", "manpages", "debian-reference-en",
)  # fmt: skip
LEAST_CHARS, MOST_CHARS, LEAST_WORDS = 25, 400, 4

_END = re.compile(r"(?<=[.!?;:])[\"')\]]*\s+|\n\s*\n")
_DROPPED = re.compile(r"<(script|style|head|nav|pre)\b.*?</\1>", re.S | re.I)
_BLOCK = re.compile(r"</?(p|div|li|dd|dt|h\d|td|tr|br|table|ul|ol|section)\b[^>]*>", re.I)
_TAG = re.compile(r"<[^>]*>")
_COMMENT = re.compile(r"\$\(\s(.*?)\s\$\)", re.S)
_WORD = re.compile(r"[A-Za-z]{2,}")
_ROFF = re.compile(r"^[.'].*$|\\[-fB&(][A-Z]?", re.M)


def sentences(folder: Path) -> list[str]:
    """The distinct sentences of the packages in `folder`, file by file."""
    found: dict[str, str] = {}
    for text in _texts(folder):
        for cut in _END.split(text):
            sentence = " ".join(cut.split())
            fits = LEAST_CHARS <= len(sentence) <= MOST_CHARS
            if fits and len(_WORD.findall(sentence)) >= LEAST_WORDS:
                found.setdefault(sentence.casefold(), sentence)
    return list(found.values())


def download(folder: Path) -> None:
    """The packages and the descriptions of all packages, as apt gives them."""
    folder.mkdir(parents=True, exist_ok=True)
    debian.fetch(folder)
    subprocess.run(["apt-get", "-qq", "download", *PACKAGES], cwd=folder, check=True)


def _texts(folder: Path) -> Iterator[str]:
    listed = folder / "Translation-en"
    if listed.is_file():
        yield from (described.body for described in debian.descriptions(listed).values())
    for package in sorted(folder.glob("*.deb")):
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["dpkg-deb", "-x", str(package), scratch], check=True)
            for path in sorted(Path(scratch).rglob("*")):
                if path.is_file() and not path.is_symlink():
                    yield from _read(path)


def _read(path: Path) -> Iterator[str]:
    if path.suffix == ".html":
        flat = _BLOCK.sub("\n\n", _DROPPED.sub(" ", path.read_text("utf-8", "replace")))
        yield html.unescape(_TAG.sub("", flat))
    elif path.name.endswith(".dict.dz"):
        yield gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    elif path.suffix == ".gz" and re.match(r"\.\d", path.with_suffix("").suffix):
        yield _ROFF.sub("\n\n", gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
    elif path.name.startswith("data.") and path.parent.name == "wordnet":
        for line in path.read_text("utf-8", "replace").splitlines():
            yield line.partition(" | ")[2]
    elif path.name == "set.mm":
        yield from _COMMENT.findall(path.read_text("utf-8", "replace"))


if __name__ == "__main__":
    download(Path(sys.argv[1]))
    print(f"{len(sentences(Path(sys.argv[1]))):,} sentences")
