"""The engine of many ranks: DeepSpeed ZeRO over gloo or NCCL. The only importer of deepspeed.

Losses arrive already divided by global counts, so ranks and micro-batches must be *summed*;
DeepSpeed averages both, which the factor in `backward` undoes.

Its state is written by DeepSpeed itself, one file a rank, pickled: for our own scratch folders
alone, never for an artifact. `latest` is never written nor read: who saves says where.
"""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from model.device import backend, here, moved

os.environ["DS_ACCELERATOR"] = here().type  # read once, on import; DeepSpeed would guess

import deepspeed
import torch
from deepspeed import comm
from deepspeed.checkpoint import ds_to_universal
from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine
from deepspeed.utils import safe_get_full_fp32_param
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from model.engine import dtype, prepared
from model.hashed_file import HashedFile, Written
from model.language_model import LanguageModel
from model.objective import Example, Objective
from model.optim import adamw, set_learning_rate
from model.starting import Start, bare
from model.term_norms import gradient_norms
from model.terms import Term
from model.train_config import TrainingConfig
from model.zero_config import ZeroConfig, settings

RANKS_FOLDER, UNIVERSAL_FOLDER = "zero", "universal"
"""Where a savepoint holds DeepSpeed's state: as its ranks had split it, or whole (`convert`)."""


class _HashingFiles(TorchCheckpointEngine):
    """DeepSpeed's way to its files, with their digests. It asks for zip archives, as torch does."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, Written] = {}

    def save(self, state_dict: object, path: str) -> None:
        with HashedFile(Path(path)) as out:
            torch.save(state_dict, out)  # type: ignore[arg-type]
        self.written[path] = out.written


class ZeroEngine:
    """One rank of a world started by torchrun (`components.launch`)."""

    def __init__(self, lm: LanguageModel, config: TrainingConfig, zero: ZeroConfig) -> None:
        self._device = here()
        join()
        self.rank: int = comm.get_rank()
        self.world: int = comm.get_world_size()
        self.lm = prepared(lm, config)
        lm.backbone.recomputes = zero.activation_checkpointing
        self._config, self._zero = config, zero
        self._engine, self._optimizer, _, _ = deepspeed.initialize(
            model=Objective(lm, config.objective),
            optimizer=adamw(lm, config.optim),
            config=_settings(config, zero),
        )

    @classmethod
    def started(cls, start: Start, config: TrainingConfig, zero: ZeroConfig) -> Self:
        """From weights that no rank needs to hold whole: stage 3 splits each as it comes."""
        join()
        lm = _split(start, config, zero) if zero.stage == 3 else start.whole()
        return cls(lm, config, zero)

    def sums(self, example: Example) -> Tensor:
        found: Tensor = self._engine(moved(example, self._device))
        return found.cpu()

    def backward(self, loss: Tensor) -> None:
        self._engine.backward(loss * float(self.world * self._config.micro_batches))
        if not self._engine.is_gradient_accumulation_boundary():
            self._engine.step()

    def step(self, lr: float) -> float:
        set_learning_rate(self._optimizer, lr)
        if self._zero.stage == 0:
            return self._step_whole()
        self._engine.step()
        norm = self._engine.get_global_grad_norm()
        return float("nan") if norm is None or norm < 0 else float(norm)

    def _step_whole(self) -> float:
        """Stage 0: every rank holds the whole gradient, which DeepSpeed neither measures nor
        guards there."""
        norm = clip_grad_norm_(self.lm.parameters(), self._config.optim.clip_norm)
        if not torch.isfinite(norm):
            self.lm.zero_grad()
        self._engine.step()
        return float(norm)

    def gradient_norms(self, examples: Sequence[Example], weights_S: Tensor) -> dict[Term, float]:
        # The module below DeepSpeed's, whose forward pass counts steps; gradients that are handed
        # back pass by the hooks that would reduce them. At stage 3 each rank holds a whole one.
        return gradient_norms(
            lambda example: self._engine.module(moved(example, self._device)).cpu(),
            list(self.lm.parameters()),
            examples,
            weights_S,
            add_ranks=comm.all_reduce,
        )

    def total(self, values: Tensor) -> Tensor:
        summed = values.to(self._device, copy=True)
        comm.all_reduce(summed)
        return summed.cpu()

    def save(self, folder: Path) -> Mapping[str, Written]:
        files = _HashingFiles()
        self._engine.checkpoint_engine = files
        self._engine.save_checkpoint(str(folder), tag=RANKS_FOLDER, save_latest=False)
        return {
            str(Path(path).relative_to(folder)): written for path, written in files.written.items()
        }

    def restore(self, folder: Path) -> None:
        whole = (folder / UNIVERSAL_FOLDER).is_dir()
        # Read when a checkpoint is loaded and nowhere else, so it need not be known from the start.
        self._engine._config.load_universal_checkpoint = whole
        tag = UNIVERSAL_FOLDER if whole else RANKS_FOLDER
        groups = [_without_parameters(group) for group in self._optimizer.param_groups]
        path, _ = self._engine.load_checkpoint(str(folder), tag=tag)
        if path is None:
            raise FileNotFoundError(
                f"DeepSpeed found no state in {folder / tag}; a savepoint holds one file a rank"
            )
        if whole and self._zero.stage == 3:
            # 0.19.8 gives all groups the first one's weight decay, and all parts one tensor that
            # counts the steps, which each of them then advances.
            for group, ours in zip(self._optimizer.param_groups, groups, strict=True):
                group.update(ours)
            for state in self._optimizer.optimizer.state.values():
                state["step"] = state["step"].clone()

    def finished(self) -> LanguageModel:
        lm = bare(self.lm.config)
        if self.rank == 0:
            lm = lm.to_empty(device="cpu")
        with torch.no_grad():
            for whole, part in zip(lm.parameters(), self.lm.parameters(), strict=True):
                found = part if self._zero.stage == 0 else safe_get_full_fp32_param(part)
                if self.rank == 0:
                    whole.copy_(found)
        return lm.eval()


def join() -> None:
    """Enter the world that torchrun made."""
    if here().type == "cuda":
        torch.cuda.set_device(here())
    deepspeed.init_distributed(dist_backend=backend(here()), verbose=False)


def _settings(config: TrainingConfig, zero: ZeroConfig) -> dict[str, object]:
    low = dtype(config.dtype) == torch.bfloat16
    return settings(config, zero, world=comm.get_world_size(), low_precision=low)


def _split(start: Start, config: TrainingConfig, zero: ZeroConfig) -> LanguageModel:
    """The network with a share of each weight on each rank; rank 0 alone reads or draws them."""
    told, device = _settings(config, zero), here()
    kind = dtype(config.dtype)
    lm = start.bare()
    weights = start.weights() if comm.get_rank() == 0 else None
    for module in lm.modules():
        for name, shape in list(module.named_parameters(recurse=False)):
            values = torch.empty(shape.shape) if weights is None else next(weights)[1]
            whole = nn.Parameter(values.to(device, kind))
            setattr(module, name, whole)
            # Sends what rank 0 has to the others, of which each keeps its share.
            deepspeed.zero.Init(nn.ParameterList([whole]), config_dict_or_path=told)
    return lm


def _without_parameters(group: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in group.items() if name != "params"}


def convert(savepoint: Path, folder: Path) -> None:
    """The state in `savepoint` for any number of ranks, into `folder`: one process, no ranks.

    Each parameter becomes three files (weights and both moments in float32), merged one after the
    other, so memory holds one file of a rank and one parameter. Stages 1 and 2 read each other's;
    stage 3 its own.
    """
    ds_to_universal.main(
        Namespace(
            input_folder=str(savepoint / RANKS_FOLDER),
            output_folder=str(folder / UNIVERSAL_FOLDER),
            num_extract_workers=1, num_merge_workers=1, keep_temp_folder=False, strict=True,
            inject_missing_state=True,
        )
    )  # fmt: skip
    (folder / "latest_universal").unlink()


def close() -> None:
    """Leave the process group, so that ranks end together."""
    if comm.is_initialized():
        comm.destroy_process_group()


def build_operator() -> None:
    """Join a world, which builds DeepSpeed's shared-memory operator where there is none yet."""
    join()
    close()


if __name__ == "__main__":
    build_operator()
