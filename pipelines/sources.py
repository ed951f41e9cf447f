"""Text of the large recipes: data sets by name on the Hugging Face hub, and their mixtures.

    DATASETS      every source that the paper names (§9.1), and what mid-training adds (§10)
    PRETRAINING   their shares in pretraining
    MIDTRAINING   the four mixtures that were compared (§10, appendix N), by what they are rich in
    NEMOTRON      the three kinds of web text that were compared (appendix N.1)

    hub_sources(…)     a corpus of a mixture, to be labelled and packed: what the recipes do
    streamed(…)        the same mixture tokenised while it is read: no concept is known of its text

The paper prints neither the shares nor the mixtures: it names the sources, says that mathematics
and code came to little more than 1e11 tokens, and which mixture won. The numbers are our choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from components.corpus.config import HubSource
from components.data_config import DataConfig, StreamedSource

Mixture = Literal["maths_heavy", "balanced", "code_augmented", "code_only"]
Nemotron = Literal["real", "synthetic", "mixed"]

BYTES_PER_TOKEN = 4.5
"""Of English text in a vocabulary of a hundred thousand tokens."""


@dataclass(frozen=True)
class Dataset:
    """A data set on the hub. Its key in `DATASETS` is the domain of its documents."""

    paper_name: str
    """What the paper calls it."""

    name: str
    subset: str
    licence: str

    available_tokens: float
    """What there is of it, as its publishers count; read again and again beyond."""

    note: str
    """What is known about the name, and what was not checked."""

    is_gated: bool = False
    """Whether its terms must be accepted on the hub first, and a token given."""


_OLMO = "allenai/olmo-mix-1124"
"""The OLMo 2 mixture holds the paper's seven sources besides the web, as plain files. The data sets
of peS2o's and Algebraic Stack's own publishers are loading scripts, which `datasets` 5 does not
run; StarCoder's is gated."""

_SEEN = "Subset seen in use."
_FOLDER = "The subset is the name of its folder; it was not tried."

DATASETS: dict[str, Dataset] = {
    "web": Dataset(
        "Nemotron-CC-HQ, real", "nvidia/Nemotron-CC-v2", "High-Quality", "NVIDIA Data Agreement",
        6e11,
        "The first release, whose count this is, has no place on the hub; this is its successor. "
        f"{_FOLDER}",
        is_gated=True,
    ),
    "web-synthetic": Dataset(
        "Nemotron-CC-HQ, synthetic", "nvidia/Nemotron-CC-v2", "High-Quality-Synthetic",
        "NVIDIA Data Agreement", 1.26e12,
        "Rephrased by Qwen3-30B-A3B; the subset Diverse-QA is left out. " + _FOLDER,
        is_gated=True,
    ),
    "papers": Dataset("peS2o", _OLMO, "pes2o", "ODC-By-1.0", 5.86e10, _SEEN),
    "arxiv": Dataset("arXiv", _OLMO, "arxiv", "ODC-By-1.0", 2.08e10, _FOLDER),
    "web-mathematics": Dataset(
        "OpenWebMath", _OLMO, "open-web-math", "ODC-By-1.0", 1.22e10, _FOLDER
    ),
    "mathematical-code": Dataset(
        "Algebraic Stack", _OLMO, "algebraic-stack", "ODC-By-1.0", 1.18e10, _FOLDER
    ),
    "code": Dataset("StarCoder", _OLMO, "starcoder", "ODC-By-1.0", 8.3e10, _FOLDER),
    "reference": Dataset(
        "Wikipedia and Wikibooks", _OLMO, "wiki", "ODC-By-1.0", 3.7e9, _SEEN
    ),
    "mathematics-exercises": Dataset(
        "Dolmino-Mix, mathematics", "allenai/dolmino-mix-1124", "math", "ODC-By-1.0", 1.07e10,
        f"Mid-training alone; named by the release's model card. {_FOLDER}",
    ),
}  # fmt: skip

PRETRAINING: dict[str, float] = {
    "web": 0.48, "web-synthetic": 0.40, "code": 0.04, "papers": 0.03, "arxiv": 0.018,
    "web-mathematics": 0.012, "mathematical-code": 0.01, "reference": 0.01,
}  # fmt: skip
"""88% Nemotron-CC-HQ, split as its publishers count it (0.6e12 real, 0.5e12 synthetic)."""

_MATHEMATICS = {"web-mathematics": 0.5, "mathematics-exercises": 0.4, "mathematical-code": 0.1}
_REFERENCE = {"reference": 0.4, "papers": 0.4, "arxiv": 0.2}

_KINDS: dict[Mixture, dict[str, float]] = {
    "maths_heavy": {"web": 0.4, "mathematics": 0.5, "code": 0.0, "reference": 0.1},
    "balanced": {"web": 0.25, "mathematics": 0.25, "code": 0.25, "reference": 0.25},
    "code_augmented": {"web": 0.5, "mathematics": 0.2, "code": 0.2, "reference": 0.1},
    "code_only": {"web": 0.0, "mathematics": 0.0, "code": 1.0, "reference": 0.0},
}

NEMOTRON: dict[Nemotron, dict[str, float]] = {
    "real": {"web": 1.0},
    "synthetic": {"web-synthetic": 1.0},
    "mixed": {"web": 0.5, "web-synthetic": 0.5},
}


def midtraining(
    mixture: Mixture = "code_augmented", nemotron: Nemotron = "real"
) -> dict[str, float]:
    """Shares of the domains in a mid-training mixture. The defaults are what the paper chose."""
    kinds = _KINDS[mixture]
    parts = {"web": NEMOTRON[nemotron], "mathematics": _MATHEMATICS, "reference": _REFERENCE}
    found: dict[str, float] = {"code": kinds["code"]}
    for kind, within in parts.items():
        for domain, share in within.items():
            found[domain] = round(kinds[kind] * share, 6)
    return {domain: share for domain, share in sorted(found.items()) if share}


MIDTRAINING: dict[Mixture, dict[str, float]] = {mixture: midtraining(mixture) for mixture in _KINDS}


def hub_sources(*wanted: tuple[Mapping[str, float], float]) -> tuple[HubSource, ...]:
    """The data sets of some mixtures, each with enough text for its share of the tokens.

    `wanted` are pairs of shares by domain and the tokens drawn by them. What is there bounds it.
    """
    n_tokens: dict[str, float] = {}
    for shares, total in wanted:
        for domain, share in shares.items():
            n_tokens[domain] = n_tokens.get(domain, 0.0) + share * total / sum(shares.values())
    return tuple(
        HubSource(
            name=DATASETS[domain].name,
            subset=DATASETS[domain].subset,
            domain=domain,
            licence=DATASETS[domain].licence,
            max_bytes=round(min(n, DATASETS[domain].available_tokens) * BYTES_PER_TOKEN),
        )
        for domain, n in n_tokens.items()
    )


def streamed(shares: Mapping[str, float], *, lanes: int) -> DataConfig:
    """The data sets of a mixture as the `data` of a training config, in place of `domain_weights`.

    For the families without concepts, and beside a labelled corpus: nothing is packed or labelled.
    """
    return DataConfig(
        sources={
            domain: StreamedSource(path=DATASETS[domain].name, name=DATASETS[domain].subset)
            for domain in shares
        },
        weights=dict(shares),
        lanes=lanes,
    )
