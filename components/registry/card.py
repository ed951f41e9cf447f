"""The card of a model version, in Markdown, written from evidence alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.accounting import Parameters
from model.config import Config, LanguageModelConfig

CONDITIONS = {
    "capability": "Capability",
    "nativeness": "Nativeness: the named parts are on the path to the output",
    "agreement": "Agreement: an attribution foretells what an intervention does",
    "validity": "Validity: interventions stay among states the network was trained on",
    "interpretation": "Interpretation: the card describes the internal variable",
    "coverage": "Coverage: the named parts carry the prediction, the residual little",
}

CHANCE_AREA = 0.5
FEW_DOCUMENTS = 100
SMALL_NETWORK = 100_000_000


class ScoreFact(Config):
    """One measured number as the evaluation wrote it."""

    value: float
    n: int
    n_of: str
    low: float
    high: float
    unit: str
    condition: str
    note: str = ""


@dataclass(frozen=True)
class Evidence:
    """Everything the card may speak of."""

    name: str
    alias: str
    checkpoint_digest: str
    scores_digest: str
    library_digest: str
    network: LanguageModelConfig
    parameters: Parameters
    training: Mapping[str, object]
    scores: Mapping[str, ScoreFact]


def write_card(evidence: Evidence) -> str:
    """The whole card."""
    parts = [
        f"# {evidence.name}",
        _what_it_is(evidence),
        "## Made from",
        _made_from(evidence),
        "## Measured on held-out text",
        "Each interval holds 95% of resamples of what its last column counts.",
        *_score_tables(evidence.scores),
        "## What this leaves open",
        "\n".join(f"- {limit}" for limit in limits(evidence)),
    ]
    return "\n\n".join(parts) + "\n"


def limits(evidence: Evidence) -> list[str]:
    """What a reader must not conclude, each from a number."""
    found = [
        "The library was frozen before training; a concept it lacks can only be found among the "
        "unknown ones.",
        "That parts add up to a logit is true by construction; read the cost of taking parts away.",
    ]
    documents = evidence.scores.get("bits_per_byte")
    if documents is not None and documents.n < FEW_DOCUMENTS:
        found.append(
            f"Scores rest on {documents.n} held-out documents; intervals by document are wide."
        )
    if evidence.parameters.total < SMALL_NETWORK:
        found.append(
            f"With {evidence.parameters.total:,} parameters it writes no dependable text; it "
            f"shows the method, not its ceiling."
        )
    alignment = evidence.scores.get("alignment_auroc")
    if alignment is not None:
        verdict = (
            "does not tell own from wrong pairings better than chance"
            if alignment.low <= CHANCE_AREA
            else "tells own from wrong pairings better than chance"
        )
        found.append(
            f"Alignment was judged offline by a sentence encoder, which {verdict} "
            f"({_with_interval(alignment)}); it is no substitute for a reader."
        )
    cost = next(
        (score for name, score in evidence.scores.items() if name.startswith("cost_of_residual")),
        None,
    )
    if cost is not None:
        found.append(
            f"Without its residual the network loses {_with_interval(cost)} nats per token: that "
            f"much of what it knows has no name."
        )
    if evidence.network.bottleneck is None:
        found.append("This family has no concepts: nothing in it is explained by name.")
    return found


def _what_it_is(evidence: Evidence) -> str:
    network, counted = evidence.network, evidence.parameters
    backbone = network.backbone
    text = (
        f"A language model of the family `{network.family}`: {backbone.n_layers} layers of width "
        f"{backbone.width}, {counted.total:,} parameters, sequences of {backbone.max_length} "
        f"tokens in blocks of {backbone.block}. Offered under the alias `{evidence.alias}`."
    )
    if network.bottleneck is not None:
        text += (
            f" Every logit is a sum over {network.bottleneck.n_known:,} named concepts, "
            f"{network.bottleneck.n_unknown:,} unnamed ones, and a residual."
        )
    return text


def _made_from(evidence: Evidence) -> str:
    rows = {
        "checkpoint": f"`{evidence.checkpoint_digest}`",
        "scores": f"`{evidence.scores_digest}`",
        "concept library": f"`{evidence.library_digest}`",
        **{name.replace("_", " "): _plain(value) for name, value in evidence.training.items()},
    }
    lines = ["| what | value |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value} |" for name, value in rows.items()])


def _score_tables(scores: Mapping[str, ScoreFact]) -> list[str]:
    tables = []
    for condition, title in CONDITIONS.items():
        rows = [
            f"| `{name}` | {score.value:.4g} | {score.low:.4g} to {score.high:.4g} | "
            f"{score.unit} | {score.n:,} {score.n_of} |"
            for name, score in scores.items()
            if score.condition == condition
        ]
        if rows:
            head = ["| score | value | 95% | unit | n |", "|---|---|---|---|---|"]
            tables += [f"### {title}", "\n".join(head + rows)]
    return tables


def _with_interval(score: ScoreFact) -> str:
    return f"{score.value:.3g} [{score.low:.3g}, {score.high:.3g}]"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(inner) for inner in value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
