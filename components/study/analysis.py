"""Analyse a study: every figure with n and an interval, as JSON and as a page (paper app. D).

analysis.json    figures by part: phase 1, phase 2, models, coherence, power; what was left out
analysis.html    the same for people
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from components import contracts
from components.study import coherence as phase_one
from components.study import fit as phase_two
from components.study import mixed_models, ordinal
from components.study.config import AnalyseConfig
from components.study.figures import Analysis, Figure
from components.study.page import write_page
from components.study.power import power
from components.study.ratings import Pairs, paired, read
from components.study.sheets import DISTRACTOR, HUMAN, PIPELINE, WORDS

FEWEST_PAIRS = 10
"""Pairs that a mixed model needs to have anything to estimate."""


class AnalysisError(ValueError):
    """Answers that do not belong together or are too few. The message says which."""


def analyse(named: Path, rated: Sequence[Path], analysis: Path, config: AnalyseConfig) -> int:
    """Write figures and page. Returns the number of figures.

    `named` holds the answers of phase 1, `rated` those of phase 2, or nothing before it.
    """
    if config.ordinal:
        ordinal.require_extra()
    told = {
        f"phase {phase}": _of_phase(path, phase) for phase, path in enumerate([named, *rated], 1)
    }
    _check_one_study(told)
    words = read(named)[WORDS]
    first = phase_one.coherence(words, draws=config.bootstrap_draws, seed=config.seed)
    found = Analysis(
        study_ids=tuple(str(said["study_id"]) for said in told.values()),
        library_digest=str(told["phase 1"]["library_digest"]),
        collected=told,
        coherence=first,
        fit={},
        models={},
        by_coherence={},
        power={},
        left_out=() if "icc1" in first else ("agreement: fewer than two concepts rated twice",),
    )
    if rated:
        coherence_by_id = dict(zip(words.concept_ids, words.mean_C.tolist(), strict=True))
        found = _with_fit(found, rated[0], coherence_by_id, config)
    (analysis / "analysis.json").write_text(found.model_dump_json(indent=1) + "\n")
    write_page(found, analysis / "analysis.html")
    contracts.seal(analysis, contracts.STUDY_ANALYSIS)
    parts = (found.coherence, found.fit, found.models, found.by_coherence, found.power)
    return sum(map(len, parts))


def _of_phase(answers: Path, phase: int) -> dict[str, object]:
    contracts.verify(answers, contracts.ANSWERS)
    said = contracts.json_file(answers, "collected.json")
    if said["phase"] != phase:
        raise AnalysisError(
            f"{answers} holds answers of phase {said['phase']}, not of phase {phase}; give each "
            f"phase its own"
        )
    if not said["n_items_answered"]:
        raise AnalysisError(f"{answers} holds no answer; collect some first")
    return said


def _check_one_study(told: Mapping[str, Mapping[str, object]]) -> None:
    later = told.get("phase 2")
    if later is not None and later["follows"] != told["phase 1"]["study_id"]:
        raise AnalysisError(
            f"the answers of phase 2 follow study {later['follows']}, those of phase 1 are of "
            f"{told['phase 1']['study_id']}; give the two phases of one study"
        )


def _with_fit(
    found: Analysis, rated: Path, coherence_by_id: Mapping[int, float], config: AnalyseConfig
) -> Analysis:
    fits = read(rated)
    pairs = paired(fits)
    enough = pairs.first.n >= FEWEST_PAIRS
    left_out = list(found.left_out)
    if not enough:
        left_out.append(f"models and power: {pairs.first.n} pairs, fewer than {FEWEST_PAIRS}")
    related = phase_two.correlations(fits, coherence_by_id, config)
    related |= phase_two.by_coherence(pairs, coherence_by_id, config)
    wanted = [f"coherence_to_fit_{kind}" for kind in (PIPELINE, HUMAN, DISTRACTOR)]
    wanted += [f"advantage_{name}" for name in ("low", "middle", "high")]
    left_out += [f"{name}: too few concepts, or all alike" for name in wanted
                 if name not in related]  # fmt: skip
    with_fit = found.model_copy(
        update={
            "fit": phase_two.fit(fits, config),
            "by_coherence": related,
            "left_out": tuple(left_out),
        }
    )
    return _with_models(with_fit, pairs, config) if enough else with_fit


def _with_models(found: Analysis, pairs: Pairs, config: AnalyseConfig) -> Analysis:
    """Models and the power that follows from the one with names, where they can be fitted."""
    models: dict[str, Figure] = {}
    simulated: dict[str, Figure] = {}
    left_out = list(found.left_out)
    try:
        plain = mixed_models.mixed(pairs, with_names=False)
        models |= mixed_models.figures(
            plain, pairs, "mixed_difference", "crossed rater and concept effects"
        )
        by_name = mixed_models.mixed(pairs, with_names=True)
        models |= mixed_models.figures(
            by_name, pairs, "mixed_difference_by_name", "an effect a name besides"
        )
        simulated = _power(pairs, by_name, config)
    except mixed_models.NoFitError as error:
        left_out.append(f"power, {error}")
    if config.ordinal:
        models |= ordinal.cumulative_link(pairs, draws=config.ordinal_draws, seed=config.seed)
    return found.model_copy(
        update={"models": models, "power": simulated, "left_out": tuple(left_out)}
    )


def _power(pairs: Pairs, fitted: mixed_models.MixedFit, config: AnalyseConfig) -> dict[str, Figure]:
    n_concepts = int((pairs.first.count_C > 0).sum())
    raters = pairs.first.n / n_concepts
    sizes = sorted({*config.power_concepts, max(2, n_concepts)})
    return {
        f"power_at_{n}": power(fitted, n, raters, runs=config.power_runs, seed=config.seed)
        for n in sizes
    }
