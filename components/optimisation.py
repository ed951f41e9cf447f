"""One optimisation over ranks: what training and mid-training share.

    optimise(job, ranks, events)      start the ranks (`components.rank`), wait, read their history

The ranks read the token stream themselves; rank 0 leaves weights and history in the job's folder.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pydantic import PositiveInt

from components import contracts, launch
from components.launch import RanksConfig
from components.tokens import TokenStream
from model import accounting, checkpoint
from model.config import Config, LanguageModelConfig
from model.engine import dtype
from model.events import Events
from model.train import History, Row
from model.train_config import TrainingConfig
from model.zero_config import ZeroConfig

HISTORY_FILE = "history.json"
JOB_FILE = "job.json"
CONCEPTS_FILE = "concepts.json"
TOKENIZER_FILE = "tokenizer.json"


class Job(Config):
    """Everything a rank must know."""

    tokens: str
    folder: str
    network: LanguageModelConfig

    start_from: str
    """Folder of the checkpoint to go on from; empty: fresh weights, seeded."""

    prevalence: tuple[float, ...]
    """Of each known concept: where the biases of fresh weights start."""

    training: TrainingConfig

    domain_weights: dict[str, float]
    """Shares of the domains in a batch; empty: every window once an epoch."""

    validation_sequences: PositiveInt
    zero: ZeroConfig


def optimise(job: Job, ranks: RanksConfig, events: Events) -> History:
    """Train over ranks. Weights and config lie in the job's folder afterwards."""
    folder = Path(job.folder)
    path = folder / JOB_FILE
    path.write_text(job.model_dump_json())
    launch.run("components.rank", path, ranks, events)
    found = json.loads((folder / HISTORY_FILE).read_text())
    return History(tuple(Row(**row) for row in found["rows"]), found["n_skipped"])


def prevalences(concepts: Path) -> tuple[float, ...]:
    """Share of chunks that carry each concept, in the order of their ids."""
    table = contracts.read(concepts, contracts.CONCEPTS).sort_by("concept_id")
    return tuple(table.column("prevalence").to_pylist())


def tokens_per_chunk(stream: TokenStream) -> float:
    """Tokens of an average training chunk, its end token left out."""
    rows = stream.span_rows("train")
    lengths = stream.spans.token_end[rows] - stream.spans.token_start[rows]
    return max(1.0, float(lengths.mean()) - 1.0)


def write_checkpoint(
    folder: Path,
    job: Job,
    *,
    concepts: str,
    tokenizer: Path,
    history: History,
    ranks: RanksConfig,
    earlier: Mapping[str, object],
) -> None:
    """Weights, and all that makes them usable with no other file at hand. Seals the folder."""
    for name in (checkpoint.WEIGHTS, checkpoint.CONFIG):
        shutil.move(Path(job.folder) / name, folder / name)
    (folder / CONCEPTS_FILE).write_text(concepts)
    shutil.copyfile(tokenizer, folder / TOKENIZER_FILE)
    facts = {
        "family": job.network.family,
        "n_parameters": accounting.parameters(job.network).total,
        "steps": history.last.step,
        "steps_skipped": history.n_skipped,
        "tokens": history.last.tokens,
        "flops": history.last.flops,
        "seed": job.training.seed,
        "world": ranks.ranks,
        "zero": job.zero.model_dump(mode="json"),
        "dtype": str(dtype(job.training.dtype)).removeprefix("torch."),
        "training": job.training.model_dump(mode="json"),
        "domain_weights": job.domain_weights,
        "earlier": dict(earlier),
    }
    (folder / "training.json").write_text(json.dumps(facts, indent=2) + "\n")
    contracts.seal(folder, contracts.CHECKPOINT)


def write_curve(folder: Path, name: str, job: Job, history: History) -> int:
    """The training curve and what it is a curve of. Returns its rows."""
    counted = accounting.parameters(job.network)
    last = {key: value for key, value in asdict(history.last).items() if value is not None}
    run = {
        "name": name,
        "family": job.network.family,
        "seed": job.training.seed,
        "n_parameters": counted.total,
        "n_backbone_parameters": counted.backbone,
        "n_tokens": history.last.tokens,
        "flops": history.last.flops,
        "budget_flops": history.last.flops,
        "final": last,
    }
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n")
    return contracts.write((asdict(row) for row in history.rows), folder, contracts.CURVE)
