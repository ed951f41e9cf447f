"""The analysis as a page: what raters made of words and names, each figure with n and interval."""

from collections.abc import Mapping
from pathlib import Path

from components.charts import Curve, Reference, lines
from components.numerals import interval, number
from components.pages import (
    Column,
    Fact,
    Markup,
    Section,
    cards,
    figure,
    joined,
    note,
    page,
    table,
    unbroken,
)
from components.study.figures import Analysis, Figure

NAMES = {
    "mean_coherence": "mean coherence",
    "recognisable": "recognisable (4–5)",
    "borderline": "borderline (3)",
    "incoherent": "incoherent (1–2)",
    "icc1": "agreement of raters, ICC(1)",
    "unanimous": "all raters alike",
    "within_concept_sd": "SD within a concept",
    "overall_sd": "SD overall",
    "mean_fit_pipeline": "mean fit of the pipeline's name",
    "mean_fit_human": "mean fit of a human's name",
    "mean_fit_distractor": "mean fit of the distractor",
    "top_two_pipeline": "4 or 5 for the pipeline's name",
    "top_two_human": "4 or 5 for a human's name",
    "top_two_distractor": "4 or 5 for the distractor",
    "superiority_pipeline_over_human": "pipeline above human",
    "superiority_pipeline_over_distractor": "pipeline above distractor",
    "superiority_human_over_distractor": "human above distractor",
    "paired_difference": "pipeline − human, paired",
    "mixed_difference": "pipeline − human, mixed model",
    "mixed_difference_by_name": "pipeline − human, mixed model with names",
    "odds_ratio": "odds of a higher rating, pipeline to human",
    "posterior_probability": "posterior probability that pipeline is better",
    "coherence_to_fit_pipeline": "coherence → fit of the pipeline's name",
    "coherence_to_fit_human": "coherence → fit of a human's name",
    "coherence_to_fit_distractor": "coherence → fit of the distractor",
    "advantage_low": "advantage at low coherence",
    "advantage_middle": "advantage at middle coherence",
    "advantage_high": "advantage at high coherence",
}
PUBLISHED = {
    "mean_coherence": "3.52", "recognisable": "0.55", "borderline": "0.27", "incoherent": "0.17",
    "icc1": "0.43", "unanimous": "0.53", "within_concept_sd": "0.65", "overall_sd": "1.05",
    "mean_fit_pipeline": "3.98", "mean_fit_human": "3.50", "top_two_pipeline": "0.79",
    "top_two_human": "0.63", "superiority_pipeline_over_human": "0.62 [0.58, 0.66]",
    "mixed_difference": "0.47", "odds_ratio": "2.38", "posterior_probability": "0.99",
    "coherence_to_fit_human": "0.42", "coherence_to_fit_pipeline": "0.46",
    "advantage_low": "0.22", "advantage_middle": "0.54", "advantage_high": "0.52",
}  # fmt: skip
"""What the paper reports (appendix D), to stand beside the figures of this study."""

_HEADLINES = ("mean_coherence", "icc1", "superiority_pipeline_over_human", "mixed_difference")


def write_page(found: Analysis, path: Path) -> None:
    """The page of one analysis; no time and no path is on it."""
    sections = [
        _section("phase1", "Is one concept recognisable?", "Raters saw lifted words alone.",
                 found.coherence),
        _section("phase2", "Which name fits?", "Raters saw the words with three names, blinded.",
                 found.fit),
        _section("models", "The difference, modelled",
                 "Both names of a pair come from one rater and one concept.", found.models),
        _section("bins", "Where the words are clearer",
                 "Concepts by their mean coherence in phase 1.", found.by_coherence),
        _power(found.power),
        Section("method", "How to read this", "What was done, and what it cannot say.",
                _method(found)),
    ]  # fmt: skip
    every = {**found.coherence, **found.fit, **found.models}
    facts = [
        Fact(NAMES[name], every[name].value, every[name].unit,
             f"{interval(every[name].low, every[name].high)}, "
             f"n = {every[name].n} {every[name].n_of}")
        for name in _HEADLINES
        if name in every
    ]  # fmt: skip
    subtitle = f"study {', then '.join(found.study_ids)}, library {found.library_digest[:12]}"
    shown = [section for section in sections if section.body]
    path.write_text(page("Clearstory: the human study", subtitle, shown, cards(facts)))


def figures_table(figures: Mapping[str, Figure]) -> Markup:
    """A row a figure: value, interval, n, unit, and what the paper reports."""
    columns = [
        Column("figure"), Column("value"), Column("95%"), Column("n"), Column("of"),
        Column("unit"), Column("published"), Column("note"),
    ]  # fmt: skip
    rows = (
        (
            NAMES[name], found.value, unbroken(interval(found.low, found.high)),
            found.n, found.n_of, found.unit, PUBLISHED.get(name), found.note,
        )
        for name, found in figures.items()
    )  # fmt: skip
    return table(columns, rows)


def _section(anchor: str, title: str, lead: str, figures: Mapping[str, Figure]) -> Section:
    return Section(anchor, title, lead, figures_table(figures) if figures else Markup())


def _power(figures: Mapping[str, Figure]) -> Section:
    """Power against the number of concepts; the paper's target as a line."""
    title, lead = "How large a study?", "Simulated from the mixed model with names."
    if not figures:
        return Section("power", title, lead, Markup())
    sizes = [int(name.removeprefix("power_at_")) for name in figures]
    values = [found.value for found in figures.values()]
    picture = lines(
        [Curve("power", sizes, values, dots=True)], "concepts", "power", [Reference("0.8", 0.8)]
    )
    columns = [Column("concepts"), Column("power"), Column("95%"), Column("n", "studies")]
    rows = [
        (size, found.value, unbroken(interval(found.low, found.high)), found.n)
        for size, found in zip(sizes, figures.values(), strict=True)
    ]
    caption = "Share of simulated studies of a size whose test sees the fitted difference."
    return Section("power", title, lead, figure(picture, caption) + table(columns, rows))


def _method(found: Analysis) -> Markup:
    columns = [
        Column("phase"), Column("raters"), Column("of"), Column("items answered"), Column("of"),
    ]  # fmt: skip
    rows = [
        (
            phase, number(_int(said["n_raters"])), number(_int(said["n_raters_asked"])),
            number(_int(said["n_items_answered"])), number(_int(said["n_items_asked"])),
        )
        for phase, said in found.collected.items()
    ]  # fmt: skip
    notes = [
        "Intervals resample concepts with all their ratings (models: Wald intervals). Ties count "
        "half. A human name that equals the library's is one item whose rating counts for both.",
        "The study compares names with word lists, not with documents; it says whether words and "
        "names belong together, not whether each concept labels text well.",
        *(f"Left out: {reason}." for reason in found.left_out),
    ]
    return table(columns, rows) + joined(map(note, notes))


def _int(value: object) -> int:
    return int(str(value))
