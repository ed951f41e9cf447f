"""The steering stage's summary as the report reads it, and its tables with n and intervals."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from components.pages import Cell, Column, Markup, table, unbroken

Arm = Literal["none", "prompting", "injection", "injection_mask"]
_SAYS: dict[Arm, str] = {
    "none": "left alone", "prompting": "asked for in the prompt", "injection": "amplified",
    "injection_mask": "suppressed",
}  # fmt: skip


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Mean(_Part):
    value: float
    low: float
    high: float


class Entry(_Part):
    arm: Arm
    strength: float
    prompts: str
    steering_trained: bool
    n: int
    concept_score: Mean
    quality: Mean
    harmonic_mean: Mean
    nll_nats: Mean
    concept_score_change: Mean
    word_score_change: Mean
    quality_change: Mean
    nll_nats_change: Mean


class _Compared(Mean):
    arm: Arm
    strength: float
    over: Arm
    measure: str
    n: int


class _Silence(_Part):
    strength: str
    n_texts: int
    concept_ids: list[int]
    share: float
    share_by_chance: float


class _Before(_Part):
    strength: float
    n: int
    before: Mean
    after: Mean
    change: Mean


class _Shifts(_Part):
    strength: float
    n: int
    rank_correlation: Mean
    slope: Mean
    top_logits: Mean


class _Member(_Part):
    name: str


class _Group(_Part):
    strength: float
    n: int
    presence_unsteered: Mean
    presence_steered: Mean
    presence_change: Mean
    quality_change: Mean
    nll_nats_change: Mean


class _Safety(_Group):
    members: list[_Member]


class _Response(_Group):
    similarity_change: Mean


class _Concept(_Part):
    concept_id: int
    name: str


class Summary(_Part):
    n_concepts: int
    n_prompts: int
    n_new_tokens: int
    concept_score: str
    strength_unit: str
    n_strength_zero_equal_to_unsteered: int
    silent: list[_Silence]
    arms: list[Entry]
    comparisons: list[_Compared]
    before_after: list[_Before]
    logit_shifts: list[_Shifts]
    safety: _Safety | None
    response: _Response | None
    concepts: list[_Concept]

    def entry(self, arm: Arm, strength: float, prompts: str) -> Entry:
        """One arm of the network that was trained to be steered."""
        return next(
            one for one in self.arms if one.steering_trained
            and (one.arm, one.strength, one.prompts) == (arm, strength, prompts)
        )  # fmt: skip

    def steered(self, arm: str, *, trained: bool = True) -> list[Entry]:
        """An arm from its weakest strength on, without 0, on all prompts it met."""
        found = [
            one for one in self.arms
            if one.arm == arm and one.prompts == "all" and one.steering_trained == trained
            and (one.strength or arm == "prompting")
        ]  # fmt: skip
        return sorted(found, key=lambda one: abs(one.strength))


def arms_table(found: Summary) -> Markup:
    """One row an arm and strength, against the text left alone."""
    rows: list[list[Cell]] = [
        [
            _SAYS[entry.arm] + ("" if trained else ", before"), entry.strength or None,
            with_interval(entry.concept_score), change(entry.concept_score_change),
            change(entry.word_score_change), with_interval(entry.quality),
            change(entry.nll_nats_change), with_interval(entry.harmonic_mean), entry.n,
        ]
        for trained, arms in ((True, ("prompting", "injection", "injection_mask")),
                              (False, ("injection",)))
        for arm in arms
        for entry in found.steered(arm, trained=trained)
    ]  # fmt: skip
    columns = [
        Column("arm"), Column("strength"), Column("concept score", "0 to 1"),
        Column("change of it"), Column("change", "by lifted words"), Column("quality", "0 to 1"),
        Column("change of cost", "nats per token"), Column("harmonic mean"), Column("n", "texts"),
    ]  # fmt: skip
    return table(
        columns, rows,
        "With 95% intervals over concepts; changes are paired with the text left alone. Before: by "
        "the network that saw no steering in training.",
    )  # fmt: skip


def rivals_table(found: Summary) -> Markup:
    """Amplification against leaving alone and against asking."""
    rows: list[list[Cell]] = [
        [_SAYS[one.arm], one.strength, _SAYS[one.over], change(one), one.n]
        for one in found.comparisons
        if one.measure == "concept_score"
    ]
    columns = [
        Column("arm"), Column("strength"), Column("against"), Column("concept score, change"),
        Column("n", "texts"),
    ]  # fmt: skip
    return table(columns, rows, "The same prompts and random numbers, paired.")


def before_after_table(found: Summary) -> Markup:
    """What steering training changed."""
    if not found.before_after:
        return Markup()
    rows: list[list[Cell]] = [
        [
            one.strength, with_interval(one.before), with_interval(one.after), change(one.change),
            one.n,
        ]
        for one in found.before_after
    ]  # fmt: skip
    columns = [
        Column("strength"), Column("harmonic mean", "before steering training"),
        Column("harmonic mean", "after it"), Column("change", "paired"), Column("n", "texts"),
    ]  # fmt: skip
    return table(columns, rows, "Amplified texts of the pretrained and of the final network.")


def shifts_table(found: Summary) -> Markup:
    """What calibration promised to the logits, and what came."""
    rows: list[list[Cell]] = [
        [
            one.strength, with_interval(one.top_logits), with_interval(one.slope),
            with_interval(one.rank_correlation), one.n,
        ]
        for one in found.logit_shifts
    ]  # fmt: skip
    columns = [
        Column("promised", "logits"), Column("observed", "at the same token"),
        Column("slope", "all tokens"), Column("rank correlation", "all tokens"),
        Column("n", "concepts"),
    ]  # fmt: skip
    return table(columns, rows, "Shift of logits at the first masked position.")


def groups_table(found: Summary) -> Markup:
    """A suppressed group and answers steered to a target, cost beside effect."""
    named: list[tuple[str, _Group]] = []
    if found.safety is not None:
        members = ", ".join(member.name for member in found.safety.members)
        named.append((f"suppressed as a group: {members}", found.safety))
    if found.response is not None:
        nearer = change(found.response.similarity_change)
        said = f"a target's concepts amplified (cosine with the target {nearer})"
        named.append((said, found.response))
    if not named:
        return Markup()
    rows: list[list[Cell]] = [
        [
            name, group.strength, with_interval(group.presence_unsteered),
            with_interval(group.presence_steered), change(group.presence_change),
            change(group.quality_change), change(group.nll_nats_change), group.n,
        ]
        for name, group in named
    ]  # fmt: skip
    columns = [
        Column("what"), Column("strength"), Column("concept score", "left alone"),
        Column("concept score", "steered"), Column("change of it"), Column("change of quality"),
        Column("change of cost", "nats per token"), Column("n", "texts"),
    ]  # fmt: skip
    return table(columns, rows, "Without retraining; intervals over prompts.")


def with_interval(mean: Mean) -> Markup:
    """A number and its 95% interval, never broken over lines."""
    return unbroken(f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]".replace("-", "−"))


def change(mean: Mean) -> Markup:
    """The same with a sign."""
    text = f"{mean.value:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}]"
    return unbroken(text.replace("-", "−"))
