"""The report: one page that tells a run from its text to what it does when pushed.

Everything on it comes from the artifacts it is given and from the record of how they were made,
which lies beside them. It holds no time and no path of its own: the same artifacts make the same
page.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from components import contracts
from components.manifests import Manifest
from components.numerals import interval
from components.pages import Fact, cards, page
from components.provenance import Provenance, trail
from components.report import (
    corpus,
    cost,
    finetuned,
    learning,
    library,
    lineage,
    making,
    measures,
    scaling,
    steered,
    traces,
)
from components.report import judged as judgement
from components.report.config import ReportConfig
from components.report.inputs import Curve, Scores, as_json, manifest, read_curve, read_scores


def report(
    documents: Path, concepts: Path, labels: Path, curve: Path, midtraining_curve: Path,
    scores: Path, fit: Path, attributions: Path, steering: Path, version: Path,
    judged: Path, finetuning: Sequence[Path], written: Path, config: ReportConfig,
) -> None:  # fmt: skip
    """Write `report.html` for people and `report.json` for programs.

    `finetuning` holds the scores before and after that stage, or nothing where the run has none.
    """
    inputs = {
        "documents": documents, "concepts": concepts, "labels": labels,
        "curve": curve, "midtraining curve": midtraining_curve, "scores": scores,
        "scaling fit": fit, "attributions": attributions, "steering": steering,
        "model version": version, "judged": judged,
    }  # fmt: skip
    if finetuning:
        inputs["fine-tuning scores"] = finetuning[0]
    phases = [
        ("pretraining", read_curve(curve)), ("midtraining", read_curve(midtraining_curve)),
    ]  # fmt: skip
    measured = read_scores(scores)
    made = trail(inputs.values())
    contracts.verify(fit, contracts.SCALING_FIT)
    contracts.verify(version, contracts.MODEL_VERSION)
    sections = [
        corpus.section(documents),
        library.section(concepts, labels, config),
        making.section(concepts),
        judgement.section(read_scores(judged)),
        learning.section(phases, measured),
        measures.section(measured),
        *([finetuned.section(read_scores(finetuning[0]))] if finetuning else []),
        traces.section(attributions, config),
        steered.section(steering, config),
        scaling.section(fit),
        cost.section(phases, fit, made),
        lineage.section({name: manifest(folder) for name, folder in inputs.items()}),
    ]
    html = page(
        f"Clearstory: the {config.recipe} run",
        _subtitle(version, phases[0][1], made),
        sections,
        cards(_headlines(phases, measured)),
    )
    (written / "report.html").write_text(html)
    (written / "report.json").write_text(as_json(_facts(inputs, phases, measured, config)))
    contracts.seal(written, contracts.REPORT)


def show(body: str, page: str) -> None:
    """Copy the page of a committed report, whose manifest is `body`, to where KFP shows it."""
    committed = Manifest.model_validate_json(Path(body).read_bytes())
    Path(page).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(committed.location) / "report.html", page)


def _subtitle(version: Path, curve: Curve, made: Sequence[Provenance]) -> str:
    said = contracts.json_file(version, "version.json")
    commits = ", ".join(sorted({execution.commit for execution in made}))
    commit = f", code {commits}" if commits else ""
    return (
        f"{said['name']}, alias {said['alias']}: family {curve.run.family}, "
        f"seed {curve.run.seed}{commit}"
    )


def _headlines(phases: list[tuple[str, Curve]], scores: Scores) -> list[Fact]:
    """What to remember: size, loss against the unigram, and how much of it is concepts."""
    run = phases[0][1].run
    loss = scores.first("nll_nats_per_token")
    gain = scores.first("gain_over_unigram_nats_per_token")
    facts = [
        Fact("parameters", run.n_parameters),
        Fact("training tokens", sum(curve.run.n_tokens for _, curve in phases)),
        Fact("training", sum(curve.run.flops for _, curve in phases), "FLOPs"),
        Fact("held-out loss", loss.value, loss.unit, interval(loss.low, loss.high)),
        Fact("under the unigram by", gain.value, gain.unit, interval(gain.low, gain.high)),
    ]
    for name, prefix in (
        ("concept contribution", "concept_contribution"),
        ("concept AUROC", "concept_auroc_macro"),
        ("cost of zeroing the residual", "cost_of_residual_zero"),
    ):
        if scores.has(prefix):
            score = scores.first(prefix)
            facts.append(Fact(name, score.value, score.unit, interval(score.low, score.high)))
    return facts


def _facts(
    inputs: dict[str, Path], phases: list[tuple[str, Curve]], scores: Scores, config: ReportConfig
) -> dict[str, object]:
    return {
        "recipe": config.recipe,
        "inputs": {name: manifest(folder).digest for name, folder in inputs.items()},
        "phases": {name: curve.run.model_dump(mode="json") for name, curve in phases},
        "scores": {name: score.model_dump() for name, score in scores.by_name.items()},
    }
