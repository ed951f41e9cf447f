"""One optimisation over ranks: what training and mid-training share.

    optimise(job, ranks, events, scratch)     start the ranks (`components.rank`), wait, read their
                                              history; from a savepoint if `scratch` holds one

The ranks read the token stream themselves; rank 0 leaves weights and history in the job's folder.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from components import contracts, launch, resuming
from components.job import Job
from components.launch import RanksConfig
from components.tokens import TokenStream
from model import accounting, checkpoint
from model.curve import History, Row
from model.engine import dtype
from model.events import Events

__all__ = ["Job", "optimise", "prevalences", "tokens_per_chunk", "write_checkpoint", "write_curve"]

HISTORY_FILE = "history.json"
SOURCES_FILE = "sources.json"
"""What every source gave to all steps."""

JOB_FILE = "job.json"
CONCEPTS_FILE = "concepts.json"
TOKENIZER_FILE = "tokenizer.json"


def optimise(job: Job, ranks: RanksConfig, events: Events, scratch: Path | None = None) -> History:
    """Train over ranks. Weights and config lie in the job's folder afterwards.

    `scratch` outlives a kill: savepoints are kept in it, and a run that finds one goes on from
    there. None: nothing outlives the call.
    """
    folder = Path(job.folder)
    if scratch is not None:
        job = resuming.from_newest(job, ranks, scratch, events)
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
    return max(1.0, stream.chunk_tokens("train") - 1.0)


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
        "sources": json.loads((Path(job.folder) / SOURCES_FILE).read_text()),
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
