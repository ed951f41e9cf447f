"""`python -m components.harness`: what a checkpoint can do, by tasks of the lm-evaluation-harness.

run          tasks from a folder of YAML files, or by name where the hub is reached
capability   benchmarks from pinned packages, without a hub; most are subsets, and say so

python -m components.harness run --checkpoint C --tasks tasks/ --out measured
python -m components.harness run --checkpoint C --tasks hellaswag,arc_challenge --out measured
python -m components.harness capability --checkpoint C --out measured
"""

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from components import fetch
from components.capability import benchmarks
from components.capability.config import ALL, CapabilityConfig
from components.capability.measure import SCORES_FILE, measure, write
from components.capability.sandbox import SandboxError
from components.examinee import Examinee
from components.fetch import FetchError
from components.networks import open_network
from model.conditional_config import ConditionalConfig

_BAD_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0, or 2 with one line on stderr where the input cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        _make(given.out)
        (_run if given.command == "run" else _measure)(given)
    except (ValueError, FetchError, SandboxError) as error:
        shown = _refusal(error) if isinstance(error, ValidationError) else error
        print(f"{given.command}: {shown}", file=sys.stderr)
        return _BAD_INPUT
    return 0


def _make(out: Path) -> None:
    """The folder for figures, before hours are spent on them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"figures cannot be written to {out} ({error.strerror}); give another --out"
        ) from error


def _refusal(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where} is {first['input']}: {first['msg']}" if where else first["msg"]


def _run(given: argparse.Namespace) -> None:
    from components.harness.config import HarnessConfig
    from components.harness.tasks import RESULTS_FILE, run  # imports the harness: over a second

    folder, names = _tasks(given.tasks)
    config = HarnessConfig(
        folder=folder, names=names, limit=given.limit, likelihood=_likelihood(given)
    )
    results = run(_examinee(given), given.out, config)
    for name, task in results["tasks"].items():
        for metric, found in task["metrics"].items():
            error = found["standard_error"]
            spread = "" if error is None else f" ± {error:.4f}"
            print(f"{name:<32}{metric:<28}{found['value']}{spread}  n = {task['n']}")
    print(f"all figures: {given.out / RESULTS_FILE}")


def _measure(given: argparse.Namespace) -> None:
    config = CapabilityConfig(
        benchmarks=given.benchmarks, limit=given.limit, likelihood=_likelihood(given),
        n_new=given.new_tokens,
    )  # fmt: skip
    fetch.fetch_all(benchmarks.packages(config.benchmarks))
    found = measure(_examinee(given), config)
    write(found, given.out)
    for name, score in found.scores.items():
        interval = f"[{score.low:.3f}, {score.high:.3f}]"
        print(f"{name:<34}{score.value:.3f} {interval}  n = {score.n:<4} {score.note}")
    print(f"95% intervals by question; all figures: {given.out / SCORES_FILE}")


def _tasks(text: str) -> tuple[Path | None, tuple[str, ...]]:
    """A folder, `FOLDER:NAME,NAME`, or names that the harness knows."""
    folder, _, names = text.rpartition(":") if ":" in text else (text, "", "")
    if Path(folder).is_dir():
        return Path(folder).resolve(), tuple(filter(None, names.split(",")))
    if "/" in text:
        raise ValueError(f"{folder} is not a folder; give that of the task files, or names")
    return None, tuple(filter(None, text.split(",")))


def _likelihood(given: argparse.Namespace) -> ConditionalConfig:
    return ConditionalConfig(
        order=given.order, samples=given.samples, rows=given.batch, seed=given.seed
    )


def _examinee(given: argparse.Namespace) -> Examinee:
    return Examinee(open_network(given.checkpoint), _likelihood(given))


def _parser() -> argparse.ArgumentParser:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m components.harness", description=__doc__, formatter_class=shape
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", description=__doc__, formatter_class=shape)
    run.add_argument(
        "--tasks", required=True, help="a folder of task files, FOLDER:NAME,NAME, or names"
    )
    _add_shared(run)
    packaged = commands.add_parser("capability", description=__doc__, formatter_class=shape)
    packaged.add_argument(
        "--benchmarks", nargs="+", choices=ALL, default=ALL, help="default: all of them"
    )
    packaged.add_argument(
        "--new-tokens", type=int, default=256,
        help="most tokens of a written answer (default: %(default)s); half of what is read at most",
    )  # fmt: skip
    _add_shared(packaged)
    return parser


def _add_shared(command: argparse.ArgumentParser) -> None:
    command.add_argument("--checkpoint", type=Path, required=True, help="ours, or as released")
    command.add_argument("--out", type=Path, required=True, help="folder to write figures to")
    command.add_argument("--limit", type=int, help="first so many questions of each task")
    command.add_argument(
        "--samples", type=int, default=16,
        help="masks drawn for each block of a continuation (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--order", choices=("random", "left_to_right"), default="random",
        help="in which a block is unmasked: estimated over all orders, or exactly for one",
    )  # fmt: skip
    command.add_argument("--batch", type=int, default=32, help="rows in one forward pass")
    command.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    sys.exit(main())
