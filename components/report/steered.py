"""What happens when a concept is pushed: how much of it appears, and what that costs (§6.2)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
)
from components.report.config import ReportConfig
from components.report.inputs import read_json, read_table
from components.report.steering_tables import (
    Arm,
    Entry,
    Summary,
    arms_table,
    before_after_table,
    groups_table,
    rivals_table,
    shifts_table,
)
from components.report.traces import cut

_KINDS = {"injection": "neutral", "injection_mask": "about"}


@dataclass(frozen=True)
class _Sample:
    """One generated text under one arm and strength."""

    concept_id: int
    name: str
    prevalence: float
    prompt_id: int
    steering_trained: bool
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
    found = Summary.model_validate_json(
        read_json(steering, contracts.STEERING_REPORT, "summary.json")
    )
    names = list(_Sample.__dataclass_fields__)
    rows = read_table(steering, contracts.STEERING_REPORT, *names).to_pylist()
    samples = [_Sample(**row) for row in rows]
    trained = [sample for sample in samples if sample.steering_trained]
    return Section(
        "steering", "Steering",
        f"{found.n_concepts} concepts across the range of prevalence, {found.n_prompts} prompts "
        f"each, n = {len(samples)} texts of at most {found.n_new_tokens} tokens. Concept score: "
        f"{found.concept_score}. {found.n_strength_zero_equal_to_unsteered} texts steered at "
        f"strength 0 are the network's own, to the last bit.",
        joined([
            _curves(found), _trade(found), arms_table(found), rivals_table(found), _silent(found),
            before_after_table(found), shifts_table(found), groups_table(found),
            _by_concept(trained), _examples(trained, config),
        ]),
    )  # fmt: skip


def _curves(found: Summary) -> Markup:
    unit = f"strength: {found.strength_unit}"
    return side_by_side(
        figure(
            lines(_by_strength(found, effect=True), unit, "concept score", width=540, height=260),
            "Effect: probability of the concept in the text. Left of 0 it is suppressed, on "
            "prompts about it; right of 0 amplified, on neutral prompts.",
        ),
        figure(
            lines(_by_strength(found, effect=False), unit, "nats per token", width=540, height=260),
            "Cost: how unlikely the network left alone finds the text. Lower is more fluent.",
        ),
    )


def _by_strength(found: Summary, *, effect: bool) -> list[Curve]:
    """One line an arm, from the text left alone on."""
    drawn = []
    for arm, name in (("injection", "amplified"), ("injection_mask", "suppressed")):
        alone = found.entry("none", 0.0, _KINDS[arm])
        entries = sorted([alone, *found.steered(arm)], key=lambda entry: entry.strength)
        means = [entry.concept_score if effect else entry.nll_nats for entry in entries]
        drawn.append(
            Curve(name, [e.strength for e in entries], [m.value for m in means], dots=True)
        )
    return drawn


def _trade(found: Summary) -> Markup:
    """Effect against cost: what lies above and to the left of another is better in both."""

    def curve(name: str, entries: Sequence[Entry]) -> Curve:
        costs = [entry.nll_nats_change.value for entry in entries]
        return Curve(name, costs, [e.concept_score_change.value for e in entries], dots=True)

    drawn = [
        curve("after steering training", found.steered("injection")),
        curve("before it", found.steered("injection", trained=False)),
        curve("asked for in the prompt", found.steered("prompting")),
    ]
    return figure(
        lines(drawn, "change of cost, nats per token", "change of concept score", height=280),
        "Effect against cost, a dot a strength. Up and to the left is better.",
    )


def _silent(found: Summary) -> Markup:
    names = {concept.concept_id: concept.name for concept in found.concepts}
    said = [
        f"{'any strength' if one.strength == 'any' else one.strength}: {len(one.concept_ids)} of "
        f"{found.n_concepts} ({one.share:.0%}; by chance {one.share_by_chance:.0%}; "
        f"{one.n_texts} texts each)"
        for one in found.silent
    ]
    never = [names[concept_id] for concept_id in found.silent[-1].concept_ids]
    return note(
        f"Concepts raised in no text, by strength: {'; '.join(said)}."
        + (f" At any strength: {', '.join(never)}." if never else "")
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
