"""What happens when a concept is pushed: how much of it appears, and what that costs (§6.2)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from components import contracts
from components.charts import Curve, lines
from components.pages import (
    Cell,
    Column,
    Markup,
    Section,
    figure,
    folded,
    joined,
    note,
    quote,
    side_by_side,
    table,
    unbroken,
)
from components.report.config import ReportConfig
from components.report.inputs import read_json, read_table
from components.report.traces import cut

Arm = Literal["none", "injection", "injection_mask"]
_SAYS: dict[Arm, str] = {
    "none": "left alone", "injection": "amplified", "injection_mask": "suppressed",
}  # fmt: skip
_KINDS = {"neutral": "neutral prompts", "about": "prompts about it"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Mean(_Part):
    value: float
    low: float
    high: float


class _Entry(_Part):
    arm: Arm
    strength: float
    prompts: str
    n: int
    concept_score: _Mean
    nll_nats: _Mean
    concept_score_change: _Mean
    quality_change: _Mean
    nll_nats_change: _Mean


class _Concept(_Part):
    concept_id: int
    name: str


class _Summary(_Part):
    n_concepts: int
    n_prompts: int
    strength_unit: str
    n_strength_zero_equal_to_unsteered: int
    silent_concepts: list[int]
    arms: list[_Entry]
    concepts: list[_Concept]


@dataclass(frozen=True)
class _Sample:
    """One generated text under one arm and strength."""

    concept_id: int
    name: str
    prevalence: float
    prompt_id: int
    arm: Arm
    strength: float
    concept_score: float
    quality: float
    nll_nats: float
    text: str

    @property
    def key(self) -> tuple[int, int]:
        return self.concept_id, self.prompt_id


def section(steering: Path, config: ReportConfig) -> Section:
    """Effect and cost by strength with intervals, then by concept, then texts side by side."""
    found = _Summary.model_validate_json(
        read_json(steering, contracts.STEERING_REPORT, "summary.json")
    )
    names = list(_Sample.__dataclass_fields__)
    rows = read_table(steering, contracts.STEERING_REPORT, *names).to_pylist()
    samples = [_Sample(**row) for row in rows]
    unit = f"strength: {found.strength_unit}"
    curves = side_by_side(
        figure(
            lines(_by_strength(found, effect=True), unit, "concept score", width=540, height=260),
            "Effect: probability of the concept by the words it lifts. Left of 0 it is suppressed, "
            "right of 0 amplified.",
        ),
        figure(
            lines(_by_strength(found, effect=False), unit, "nats per token", width=540, height=260),
            "Cost: how unlikely the network left alone finds the text. Lower is more fluent.",
        ),
    )
    return Section(
        "steering", "Steering",
        f"{found.n_concepts} concepts across the range of prevalence, {found.n_prompts} prompts "
        f"each, n = {len(samples)} texts. {found.n_strength_zero_equal_to_unsteered} texts steered "
        f"at strength 0 are the network's own, to the last bit.",
        curves + _table(found) + _silent(found) + _by_concept(samples) + _examples(samples, config),
    )  # fmt: skip


def _by_strength(found: _Summary, *, effect: bool) -> list[Curve]:
    """One line a kind of prompt, through both arms: they meet at strength 0."""
    drawn = []
    for kind, name in _KINDS.items():
        points = {
            entry.strength: (entry.concept_score if effect else entry.nll_nats).value
            for entry in found.arms
            if entry.prompts == kind
        }
        drawn.append(Curve(name, sorted(points), [points[s] for s in sorted(points)], dots=True))
    return drawn


def _table(found: _Summary) -> Markup:
    rows: list[list[Cell]] = [
        [
            _SAYS[entry.arm], entry.strength, entry.concept_score.value,
            _with_interval(entry.concept_score_change), _with_interval(entry.quality_change),
            _with_interval(entry.nll_nats_change), entry.n,
        ]
        for entry in found.arms
        if entry.prompts == "all" and entry.strength
    ]  # fmt: skip
    columns = [
        Column("arm"), Column("strength"), Column("concept score"),
        Column("change of it", "and 95% interval"), Column("change of quality", "distinct pairs"),
        Column("change of cost", "nats per token"), Column("n", "texts"),
    ]  # fmt: skip
    return table(columns, rows, "Against the text left alone, paired; intervals over concepts.")


def _with_interval(mean: _Mean) -> Markup:
    text = f"{mean.value:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}]"
    return unbroken(text.replace("-", "−"))


def _silent(found: _Summary) -> Markup:
    names = [c.name for c in found.concepts if c.concept_id in set(found.silent_concepts)]
    if not names:
        return Markup()
    return note(
        f"{len(names)} of {found.n_concepts} concepts were raised in no text by the strongest "
        f"amplification: {', '.join(names)}."
    )


def _by_concept(samples: Sequence[_Sample]) -> Markup:
    grouped: defaultdict[int, list[_Sample]] = defaultdict(list)
    for sample in samples:
        grouped[sample.concept_id].append(sample)
    rows: list[list[Cell]] = []
    for group in sorted(grouped.values(), key=lambda group: -group[0].prevalence):
        suppressed, alone, amplified = (
            _furthest(group, arm) for arm in ("injection_mask", "none", "injection")
        )
        scores = [_mean([s.concept_score for s in arm]) for arm in (suppressed, alone, amplified)]
        costs = [_mean([s.nll_nats for s in arm]) for arm in (alone, amplified)]
        rows.append([group[0].name, 100 * group[0].prevalence, *scores, *costs, len(amplified)])
    columns = [
        Column("concept"), Column("prevalence", "% of chunks"), Column("score", "suppressed"),
        Column("score", "left alone"), Column("score", "amplified"),
        Column("cost", "nats, left alone"), Column("cost", "nats, amplified"),
        Column("n", "texts an arm"),
    ]  # fmt: skip
    return table(columns, rows, "Means at the greatest strengths, by concept.")


def _furthest(samples: Sequence[_Sample], arm: Arm) -> list[_Sample]:
    """Samples of an arm at its greatest strength, whatever its sign."""
    mine = [sample for sample in samples if sample.arm == arm]
    top = max((abs(sample.strength) for sample in mine), default=0.0)
    return [sample for sample in mine if abs(sample.strength) == top]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _examples(samples: Sequence[_Sample], config: ReportConfig) -> Markup:
    """For each concept the prompt that amplification moved most, both texts side by side."""
    alone = {sample.key: sample for sample in samples if sample.arm == "none"}
    pushed = [s for s in _furthest(samples, "injection") if s.key in alone]
    pushed.sort(key=lambda s: (alone[s.key].concept_score - s.concept_score, s.key))
    panels: dict[int, Markup] = {}
    for sample in pushed:
        if sample.concept_id not in panels and len(panels) < config.n_steered:
            before = alone[sample.key]
            title = f"{before.concept_score:.2f} → {sample.concept_score:.2f}"
            panels[sample.concept_id] = folded(
                f"{sample.name}: concept score {title}",
                _pair({"left alone": before, f"amplified, {sample.strength:g}": sample}, config),
                is_open=not panels,
            )
    return joined(panels.values())


def _pair(samples: Mapping[str, _Sample], config: ReportConfig) -> Markup:
    return side_by_side(
        *(
            Markup("<p>{}, {:.2f} nats per token</p>{}").format(
                title, sample.nll_nats, quote(cut(sample.text, config.max_text_chars))
            )
            for title, sample in samples.items()
        )
    )
