"""What the Debian archive says of its packages, through apt: descriptions, and debtags.

    debtags         a pinned package: 46,646 packages with tags that people gave, and the vocabulary
    descriptions    English long descriptions of every package of the release, as apt lists them

apt is told to use folders of our own, so that no right of root is needed and nothing of the machine
changes. Lists move with each point release: their SHA-256 is told, not demanded.
"""

import gzip
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from components.archives import FetchError

DEBTAGS_VERSION = "2.1.5"
DEBTAGS_SHA256 = "63dd0aee7eb62c9220311abee77cddfef73212037ae6b01723294179e9f1afc7"
DESCRIPTIONS_SHA256 = "62f59c3cdca9786e4f7adf9002f9f5729a684adcb4667e58e448dec9b5a46c7f"
"""Of the list that the figures in docs/log.md were measured with: bookworm, 2026."""

_SECONDS = 600


@dataclass(frozen=True)
class Description:
    """What Debian says of a package: a line, then paragraphs."""

    title: str
    body: str


@dataclass(frozen=True)
class Tag:
    """A tag of the vocabulary, `facet::value`, with its title and what it means."""

    title: str
    description: str


@dataclass(frozen=True)
class Debtags:
    """Tags by package, and what each tag means."""

    tags: dict[str, tuple[str, ...]]
    vocabulary: dict[str, Tag]


def debtags(package: Path) -> Debtags:
    """Read the pinned package (a .deb). Raises FetchError where it is another one."""
    digest = sha256(package)
    if digest != DEBTAGS_SHA256:
        raise FetchError(
            f"{package} has SHA-256 {digest}, but debtags {DEBTAGS_VERSION} with {DEBTAGS_SHA256} "
            f"is pinned; delete it, or get that version"
        )
    with tempfile.TemporaryDirectory() as scratch:
        _run(["dpkg-deb", "-x", str(package), scratch])
        data = Path(scratch) / "usr/share/debtags"
        lines = gzip.decompress((data / "tags-current.gz").read_bytes()).decode().splitlines()
        vocabulary = (data / "vocabulary").read_text(encoding="utf-8")
    return Debtags(dict(map(_tagged, lines)), dict(_vocabulary(vocabulary)))


def descriptions(listed: Path) -> dict[str, Description]:
    """Descriptions by package, out of a Translation-en file; the first one of a package counts."""
    found: dict[str, Description] = {}
    for stanza in _stanzas(listed.read_text(encoding="utf-8")):
        if "Package" not in stanza:
            continue
        title, _, body = stanza.get("Description-en", "").partition("\n")
        found.setdefault(stanza["Package"], Description(title, _flowing(body)))
    if not found:
        raise FetchError(f"{listed} lists no package; is it a Translation-en file of Debian?")
    return found


def fetch(folder: Path) -> tuple[Path, Path]:
    """The debtags package and the list of descriptions in `folder`, downloaded if they lack."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise FetchError(
                f"{tool} is not on this machine: debtags come from the Debian archive. Copy "
                f"debtags_{DEBTAGS_VERSION}_all.deb and Translation-en into {folder} from a "
                f"machine that has it"
            )
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"debtags_{DEBTAGS_VERSION}_all.deb"
    listed = folder / "Translation-en"
    if not listed.is_file():
        _download_lists(folder, listed)
    if not package.is_file():
        _run([*_apt(folder), "download", f"debtags={DEBTAGS_VERSION}"], folder)
    return package, listed


def sha256(path: Path) -> str:
    """Of a file's bytes, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _download_lists(folder: Path, listed: Path) -> None:
    _run([*_apt(folder), "update"], folder)
    arrived = sorted((folder / "apt/lists").glob("*_main_i18n_Translation-en"))
    whole = [path for path in arrived if not re.search(r"security|updates", path.name)]
    if len(whole) != 1:
        raise FetchError(
            f"apt listed {[path.name for path in arrived]}, of which {len(whole)} hold the "
            f"descriptions of a release; put that file at {listed}"
        )
    shutil.copyfile(whole[0], listed)


def _apt(folder: Path) -> list[str]:
    """apt-get with its state in `folder`, English descriptions, lists kept as plain text."""
    state = (folder / "apt").resolve()
    for needed in ("lists/partial", "archives/partial"):
        (state / needed).mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::State::Lists": f"{state}/lists", "Dir::Cache": str(state),
        "Acquire::Languages": "en", "Acquire::GzipIndexes": "false",
        "APT::Sandbox::User": "", "Debug::NoLocking": "true",
    }  # fmt: skip
    return ["apt-get", "-qq", *[f"-o{key}={value}" for key, value in settings.items()]]


def _run(command: list[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FetchError(
            f"{command[0]} had not ended after {_SECONDS} s; is there a network?"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()[-3:]
        raise FetchError(f"{command[0]} failed: {' '.join(said)}") from None


def _tagged(line: str) -> tuple[str, tuple[str, ...]]:
    package, _, tags = line.partition(": ")
    return package, tuple(tag for tag in tags.split(", ") if tag)


def _vocabulary(text: str) -> Iterator[tuple[str, Tag]]:
    for stanza in _stanzas(text):
        if "Tag" in stanza:
            title, _, meaning = stanza.get("Description", "").partition("\n")
            yield stanza["Tag"], Tag(title, _flowing(meaning))


def _flowing(lines: str) -> str:
    """Folded lines as running text; a line with a full stop alone is Debian's blank line."""
    return " ".join(line.strip() for line in lines.splitlines() if line.strip() not in ("", "."))


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    """Blocks of `Key: value`, with continuation lines that start with a blank."""
    for block in text.split("\n\n"):
        found: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if line[:1] in (" ", "\t"):
                found[key] = f"{found.get(key, '')}\n{line}"
            elif ":" in line:
                key, _, value = line.partition(":")
                found[key] = value.strip()
        if found:
            yield found
