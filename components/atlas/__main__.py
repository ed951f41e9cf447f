"""`python -m components.atlas`: measure annotators on labels that people made.

  evaluate    on any gold set: macro and micro AUC, mAP, P@1, R@5, calibration error, per concept
  gold        write the gold sets that can be had as packages: debtags, topics

  python -m components.atlas gold topics --out gold --texts 1000
  python -m components.atlas evaluate --concepts gold/concepts.parquet \\
      --documents gold/documents.parquet --gold gold/gold.parquet --out measured
"""

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from components import debian, embedding, fetch
from components.atlas import gold
from components.atlas.evaluation import SCORES_FILE, Evaluation, evaluate
from components.atlas.gold_config import GoldConfig

_BAD_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0, or 2 with one line on stderr where the input cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        (_write_gold if given.command == "gold" else _measure)(given)
    except (ValueError, fetch.FetchError) as error:
        shown = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        print(f"{given.command}: {shown}", file=sys.stderr)
        return _BAD_INPUT
    return 0


def _measure(given: argparse.Namespace) -> None:
    config = GoldConfig(
        encoder=given.encoder, train_share=given.train_share, n_train=given.train_texts,
        cards=given.cards, seed=given.seed, bootstrap_draws=given.draws,
    )  # fmt: skip
    cache = fetch.cache_folder() / "vectors"
    measured = evaluate(given.concepts, given.documents, given.gold, given.out, config, cache)
    _show(measured)
    print(f"figures of every concept: {given.out / 'concepts.csv'}; all: {given.out / SCORES_FILE}")


def _write_gold(given: argparse.Namespace) -> None:
    if given.name == "debtags":
        package, listed = debian.fetch(fetch.cache_folder() / "debian")
        found = gold.read_debtags(package, listed)
    else:
        fetch.fetch_all([gold.ENCYCLOPEDIA.name])
        found = gold.read_topics()
    if given.texts:
        found = gold.first(found, given.texts)
    gold.write(found, given.out)
    print(f"{len(found.texts)} texts, {len(found.concepts)} concepts: {given.out}")


def _show(measured: Evaluation) -> None:
    """A line a figure, a column an annotator."""
    print(
        f"{measured.n_train} texts to train on ({measured.n_held_back} first held back), "
        f"{measured.n_test} to test on; 95% intervals by document"
    )
    print(" " * 26 + "".join(f"{kind:<26}" for kind in measured.figures))
    for name in next(iter(measured.figures.values())):
        cells = [
            f"{found[name].value:.3f} [{found[name].low:.3f}, {found[name].high:.3f}]"
            for found in measured.figures.values()
        ]
        print(f"{name:<26}" + "".join(f"{cell:<26}" for cell in cells))
    print(f"chosen: {measured.chosen}")


def _parser() -> argparse.ArgumentParser:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m components.atlas", description=__doc__, formatter_class=shape
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("evaluate", description=__doc__, formatter_class=shape)
    for name, what in (
        ("concepts", "parquet: name, description (concept_id: else their place)"),
        ("documents", "parquet: text of the corpus that is to be labelled"),
        ("gold", "parquet: text, labels[] (names or ids of concepts), doc_id if there is one"),
        ("out", "folder to write figures to"),
    ):
        measure.add_argument(f"--{name}", type=Path, required=True, help=what)
    measure.add_argument("--encoder", default=embedding.MINILM, help="default: %(default)s")
    measure.add_argument(
        "--cards", choices=("described", "name"), default="described",
        help="what concepts are known by: name and description, or the name alone",
    )  # fmt: skip
    measure.add_argument(
        "--train-share", type=float, default=0.5,
        help="of the documents (default: %(default)s); 0: nothing is learned, cards alone",
    )  # fmt: skip
    measure.add_argument("--train-texts", type=int, default=0, help="instead: so many documents")
    measure.add_argument("--draws", type=int, default=300, help="of the bootstrap")
    measure.add_argument("--seed", type=int, default=0)
    write = commands.add_parser("gold", description=gold.__doc__, formatter_class=shape)
    write.add_argument("name", choices=("debtags", "topics"))
    write.add_argument("--out", type=Path, required=True, help="folder to write the set to")
    write.add_argument("--texts", type=int, default=0, help="so many of them, a fair sample")
    return parser


if __name__ == "__main__":
    sys.exit(main())
