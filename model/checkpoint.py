"""A network as files: weights in safetensors, config in JSON, nothing pickled.

weights.safetensors  config.json      written here
concepts.json  tokenizer.json  training.json      written beside them by the training stages
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from model.config import LanguageModelConfig
from model.language_model import LanguageModel
from model.starting import Start, bare

WEIGHTS = "weights.safetensors"
CONFIG = "config.json"


class CheckpointError(ValueError):
    """A folder that does not hold a network we can open."""


def save(lm: LanguageModel, folder: Path) -> None:
    """Write weights in float32, and the config that gives them their shapes."""
    weights = {name: tensor.detach().float().contiguous() for name, tensor in _named(lm).items()}
    save_file(weights, folder / WEIGHTS)
    (folder / CONFIG).write_text(lm.config.model_dump_json(indent=2) + "\n")


def load(folder: Path) -> LanguageModel:
    """Open a network for reading: float32, evaluation mode."""
    return opened(folder).whole().eval()


def opened(folder: Path) -> Start:
    """The weights in a folder, checked by their shapes and read one at a time."""
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise CheckpointError(
                f"{folder} has no {name}, so it is no checkpoint; give the folder that training "
                f"or mid-training wrote"
            )
    try:
        config = LanguageModelConfig.model_validate_json((folder / CONFIG).read_text())
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            names = file.keys()
            found = {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except (ValidationError, SafetensorError) as error:
        raise CheckpointError(
            f"{folder} holds a damaged or older checkpoint ({error}); run training again"
        ) from error
    wanted = {name: tuple(shape.shape) for name, shape in bare(config).named_parameters()}
    _check(found, wanted, folder)

    def weights() -> Iterator[tuple[str, torch.Tensor]]:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            for name in wanted:
                yield name, file.get_tensor(name)

    return Start(config, weights)


def _named(lm: LanguageModel) -> dict[str, torch.Tensor]:
    return dict(lm.state_dict())


Shapes = dict[str, tuple[int, ...]]


def _check(found: Shapes, wanted: Shapes, folder: Path) -> None:
    missing, foreign = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    wrong = sorted(
        f"{name} {found[name]} instead of {wanted[name]}"
        for name in wanted.keys() & found.keys()
        if wanted[name] != found[name]
    )
    if missing or foreign or wrong:
        raise CheckpointError(
            f"{folder / WEIGHTS} does not fit its {CONFIG}: missing {missing}, foreign {foreign}, "
            f"wrong shape {wrong}; it was written by another version, run training again"
        )
