"""Checkpoints of the released Steerling format, both ways (method §2, §3.1).

    lm = load(folder)                    # config.json and model.safetensors, or shards
    save(lm, folder)                     # as the released package 0.2.0 opens it
    python -m model.released verify FOLDER
    python -m model.released export CHECKPOINT FOLDER      # one of our own, with its library

`load` accepts base and instruct vocabularies, either form of the config, and the tied matrix by
either name or by both if they are equal. `save` writes it once, as `tok_emb`.

Three differences to know. Spare rows of the concept tables are no concepts: they are never kept in
a top-k there or here, `load` drops them and `save` writes zeros. The released package ranks known
concepts by activations, whose logits are cut to ±15, so concepts beyond the cut tie there; here
they are ranked uncut. And top-k counts above the number of concepts mean all of them.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from torch import Tensor

from model import checkpoint
from model.checkpoint import CheckpointError
from model.language_model import LanguageModel
from model.released_check import TOLERANCE, differences
from model.released_config import FormatError, ReleasedConfig
from model.released_files import Header, headers, tensors, write
from model.released_json import parse, render
from model.released_names import Stored, stored

CONFIG = "config.json"
BESIDE = ("concepts.json", "tokenizer.json")
SHARD_BYTES = 5_000_000_000

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
"""Accepted, by the names that safetensors has for them."""


_EXPORTED = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES.values()}


def load(folder: str | Path) -> LanguageModel:
    """Open a released checkpoint: float32, evaluation mode. CheckpointError names every fault."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise CheckpointError(f"{folder} has no {CONFIG}; give the folder of a released checkpoint")
    try:
        settings = parse((folder / CONFIG).read_text())
        config = settings.language_model()
    except ValueError as error:
        raise CheckpointError(f"{folder / CONFIG} cannot be followed: {error}") from error
    found = headers(folder)
    bare = not settings.interpretable and not any(name.startswith("transformer.") for name in found)
    wanted = stored(
        config, pad_multiple=settings.pad_multiple, prefix="" if bare else "transformer."
    )
    _check(wanted, found, folder)
    ours = {name: parameter for parameter, how in wanted.items() for name in how.names}
    lm = LanguageModel(config)
    parameters = dict(lm.named_parameters())
    filled: set[str] = set()
    with torch.no_grad():
        for name, tensor in tensors(folder, found):
            parameter = parameters[ours[name]]
            opened = wanted[ours[name]].opened(tensor).float()
            if ours[name] in filled and not torch.equal(parameter, opened):
                raise CheckpointError(
                    f"{folder} holds one matrix under the names {wanted[ours[name]].names}, with "
                    f"different values; remove the wrong one, or set weight_sharing to false"
                )
            parameter.copy_(opened)
            filled.add(ours[name])
    return lm.eval()


def save(
    lm: LanguageModel,
    folder: str | Path,
    *,
    shard_bytes: int = SHARD_BYTES,
    library_digest: str | None = None,
) -> None:
    """Write a network in the dtype of its embedding. FormatError names what the format lacks.

    `library_digest` binds the concept ids to the library they come from; the released package
    leaves that key alone. A tensor larger than `shard_bytes` has a shard of its own.
    """
    if shard_bytes < 1:
        raise ValueError(f"shard_bytes is {shard_bytes}; give the bytes of a file, 1 or more")
    settings = ReleasedConfig.of(lm.config)
    parameters = dict(lm.named_parameters())
    dtype = lm.embedding.weight.dtype
    if dtype not in DTYPES.values():
        raise FormatError(f"weights are {dtype}; the format has float32, bfloat16 and float16")
    prefix = "transformer." if settings.interpretable else ""
    held = stored(lm.config, pad_multiple=settings.pad_multiple, prefix=prefix)
    assert held.keys() == parameters.keys(), held.keys() ^ parameters.keys()
    ours = {how.names[0]: parameter for parameter, how in held.items()}
    n_bytes = {name: held[ours[name]].n_numbers * dtype.itemsize for name in ours}

    def tensor(name: str) -> Tensor:
        return held[ours[name]].closed(parameters[ours[name]].detach().to(dtype))

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, n_bytes, tensor, shard_bytes)
    text = render(settings, dtype=str(dtype).removeprefix("torch."), library_digest=library_digest)
    (folder / CONFIG).write_text(text)


def export(
    source: Path, folder: Path, *, dtype: torch.dtype, shard_bytes: int = SHARD_BYTES
) -> str:
    """Write a checkpoint that training made as a released one. Returns its library's digest.

    The digest goes into the config, so that concept ids keep their meaning; the library and the
    tokenizer, which the format does not have, are copied beside.
    """
    lm = checkpoint.load(source)
    for name in BESIDE:
        if not (source / name).is_file():
            raise CheckpointError(
                f"{source} has no {name}; give the whole folder that training or mid-training wrote"
            )
    digest = str(json.loads((source / BESIDE[0]).read_text())["digest"])
    save(lm.to(dtype), folder, shard_bytes=shard_bytes, library_digest=digest)
    for name in BESIDE:
        shutil.copyfile(source / name, folder / name)
    return digest


def main(arguments: list[str] | None = None) -> int:
    """`verify FOLDER`: 0 if every expected tensor is met within the tolerance, 1 if not.

    `export CHECKPOINT FOLDER`: 0 if it was written. 2 if a folder cannot be opened or held.
    """
    parser = argparse.ArgumentParser(
        prog="python -m model.released", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser(
        "verify", help="compare a checkpoint with the outputs in its expected.safetensors"
    )
    verify.add_argument("folder", type=Path)
    exporting = commands.add_parser(
        "export", help="write a checkpoint of a training run in the released format",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="for example:\n"
        "  python -m model.released export checkpoint released --dtype bfloat16",
    )  # fmt: skip
    exporting.add_argument("checkpoint", type=Path, help="folder that training wrote")
    exporting.add_argument("folder", type=Path, help="where the released checkpoint goes")
    exporting.add_argument("--dtype", choices=sorted(_EXPORTED), default="float32")
    given = parser.parse_args(arguments)
    try:
        if given.command == "export":
            digest = export(given.checkpoint, given.folder, dtype=_EXPORTED[given.dtype])
            print(f"{given.folder} holds {given.checkpoint} with the library {digest}")
            return 0
        return _verified(given.folder)
    except (CheckpointError, FormatError) as error:
        parser.error(str(error))


def _verified(folder: Path) -> int:
    found = differences(load(folder), folder)
    for name, difference in found.items():
        within = difference <= TOLERANCE
        print(f"{name:<24} {difference:9.2e}  {'ok' if within else f'above {TOLERANCE:g}'}")
    return 0 if all(difference <= TOLERANCE for difference in found.values()) else 1


def _check(wanted: dict[str, Stored], found: dict[str, Header], folder: Path) -> None:
    """Refuse tensors that are missing, foreign, misshapen, or of a dtype that is not theirs."""
    known = {name: how for how in wanted.values() for name in how.names}
    faults = []
    for how in wanted.values():
        if not any(name in found for name in how.names):
            faults.append(f"{' or '.join(how.names)} is missing")
    usual = _usual_dtype(found)
    for name, header in sorted(found.items()):
        if name not in known:
            faults.append(f"{name} is foreign")
        elif header.shape != known[name].shape:
            faults.append(f"{name} is {header.shape} where {known[name].shape} is wanted")
        elif header.dtype not in DTYPES:
            faults.append(f"{name} is {header.dtype} where one of {', '.join(DTYPES)} is wanted")
        elif header.dtype != usual:
            faults.append(f"{name} is {header.dtype} where the others are {usual}")
    if faults:
        raise CheckpointError(
            f"the tensors of {folder} do not fit its {CONFIG}: {'; '.join(faults)}. Correct the "
            f"settings, or copy the folder again"
        )


def _usual_dtype(found: dict[str, Header]) -> str:
    dtypes = [header.dtype for header in found.values()]
    return max(sorted(set(dtypes)), key=dtypes.count, default="F32")


if __name__ == "__main__":
    raise SystemExit(main())
