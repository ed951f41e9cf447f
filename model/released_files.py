"""Tensors of the released format, in one file or in shards; read and written one at a time.

    model.safetensors                                     one file
    model-00001-of-00003.safetensors …                    shards, and
    model.safetensors.index.json                          which tensor lies in which

Headers are read first, so a folder is accepted or refused before its tensors are read.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoint import CheckpointError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


@dataclass(frozen=True)
class Header:
    """What a file says about a tensor before it is read."""

    file: str
    dtype: str
    """By the name that safetensors has for it."""

    shape: tuple[int, ...]


def headers(folder: Path) -> dict[str, Header]:
    """Every tensor of a folder. CheckpointError names what is missing, damaged or misplaced."""
    promised = _promised(folder)
    found: dict[str, Header] = {}
    files = sorted(set(promised.values())) or [SINGLE]
    stray = sorted({path.name for path in _weights(folder)} - set(files))
    if stray:
        raise CheckpointError(
            f"{folder} also holds {stray}, which belongs to other weights; the released package "
            f"would read it with these, so remove it"
        )
    for file in files:
        for name, header in _headers(folder, file).items():
            if name in found:
                raise CheckpointError(
                    f"{name} lies in {found[name].file} and in {file} of {folder}; remove the "
                    f"file that does not belong"
                )
            found[name] = header
    unkept = sorted(
        f"{name} in {file}"
        for name, file in promised.items()
        if name not in found or found[name].file != file
    )
    unlisted = sorted(found.keys() - promised.keys()) if promised else []
    if unkept or unlisted:
        raise CheckpointError(
            f"{folder / INDEX} does not fit its shards: not there {unkept}, not listed "
            f"{unlisted}; copy the folder again"
        )
    return found


def tensors(folder: Path, found: Mapping[str, Header]) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of each header, file by file."""
    for file in sorted({header.file for header in found.values()}):
        with safe_open(folder / file, framework="pt") as opened:
            for name in sorted(name for name, header in found.items() if header.file == file):
                yield name, opened.get_tensor(name)


def write(
    folder: Path, n_bytes: Mapping[str, int], tensor: Callable[[str], Tensor], shard_bytes: int
) -> None:
    """Write the tensors named in `n_bytes`, as many files as `shard_bytes` makes them.

    Weights of this format that lie in the folder are replaced: the released package reads every
    shard it finds.
    """
    for old in (*_weights(folder), folder / INDEX):
        old.unlink(missing_ok=True)
    shards = _shards(n_bytes, shard_bytes)
    if len(shards) == 1:
        _write(folder / SINGLE, shards[0], tensor)
        return
    lies_in: dict[str, str] = {}
    for number, names in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        _write(folder / file, names, tensor)
        lies_in |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": sum(n_bytes.values())}, "weight_map": lies_in}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n")


def _weights(folder: Path) -> list[Path]:
    """Files of weights in a folder, whether they belong together or not."""
    found = folder.glob("model*.safetensors")
    return [path for path in found if path.name == SINGLE or _SHARD.fullmatch(path.name)]


def _promised(folder: Path) -> dict[str, str]:
    """The file of each tensor by the index; empty where one file holds all."""
    single, index = folder / SINGLE, folder / INDEX
    if single.is_file() and index.is_file():
        raise CheckpointError(f"{folder} has both {SINGLE} and {INDEX}; remove the older one")
    if single.is_file():
        return {}
    if not index.is_file():
        raise CheckpointError(
            f"{folder} has neither {SINGLE} nor {INDEX}, so its weights cannot be found; give the "
            f"folder of a released checkpoint"
        )
    try:
        promised = json.loads(index.read_text())["weight_map"]
        files = set(promised.values())
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{index} is no index of shards ({error!r}); copy the folder again"
        ) from error
    wrong = sorted(str(file) for file in files if not _SHARD.fullmatch(str(file)))
    if wrong or not promised:
        raise CheckpointError(
            f"{index} names {wrong or 'no file'}; a shard is called like "
            f"model-00001-of-00003.safetensors"
        )
    return dict(promised)


def _headers(folder: Path, file: str) -> dict[str, Header]:
    if not (folder / file).is_file():
        raise CheckpointError(f"{folder} has no {file}, which {INDEX} names; copy the folder again")
    try:
        with safe_open(folder / file, framework="pt") as opened:
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            return {
                name: Header(file, piece.get_dtype(), tuple(piece.get_shape()))
                for name, piece in slices.items()
            }
    except SafetensorError as error:
        raise CheckpointError(
            f"{folder / file} is damaged ({error}); copy the folder again"
        ) from error


def _shards(n_bytes: Mapping[str, int], shard_bytes: int) -> list[list[str]]:
    """Names in their order, cut where a file would outgrow `shard_bytes`; never an empty one."""
    shards: list[list[str]] = [[]]
    full = 0
    for name, size in n_bytes.items():
        if shards[-1] and full + size > shard_bytes:
            shards.append([])
            full = 0
        shards[-1].append(name)
        full += size
    return shards


def _write(path: Path, names: list[str], tensor: Callable[[str], Tensor]) -> None:
    save_file({name: tensor(name) for name in names}, path, metadata={"format": "pt"})
