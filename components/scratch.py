"""Folders that outlive a killed attempt at a stage, so that the next one goes on from them.

<root>/scratch/<stage>-<lineage>/key.json     whose it is
<root>/scratch/<stage>-<lineage>/kept/        stays for good
<root>/scratch/<stage>-<lineage>/…            goes when the stage is committed
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.keys import StageKey
from components.store import KEY_CHARS, locked, shown

KEPT_FOLDER = "kept"


@contextmanager
def lent(root: Path, key: StageKey) -> Iterator[Path]:
    """The folder of this key's lineage, ours until the block ends; cleared if it ends well.

    Keys that compute the same in another way (`Config.HOW`) share it.
    """
    folder = _folder(root, key)
    with locked(root / "leases" / f"scratch-{folder.name}"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "key.json").write_text(key.model_dump_json(indent=1))
        yield folder
        for path in folder.iterdir():
            if path.is_dir() and path.name != KEPT_FOLDER:
                shutil.rmtree(path)
        if not (folder / KEPT_FOLDER).is_dir():
            shutil.rmtree(folder)


def abandoned(root: Path, key: StageKey) -> list[str]:
    """What killed attempts at other keys of this stage left, each with what differs."""
    found = []
    for path in sorted((root / "scratch").glob(f"{key.stage}-*/key.json")):
        other = StageKey.model_validate_json(path.read_text())
        if path.parent != _folder(root, key) and other.stage == key.stage:
            found.append(f"{path.parent} ({shown(key.differences(other))})")
    return found


def _folder(root: Path, key: StageKey) -> Path:
    return root / "scratch" / f"{key.stage}-{key.lineage[:KEY_CHARS]}"
