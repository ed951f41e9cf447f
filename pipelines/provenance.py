"""Where each number of a recipe's training comes from: the paper, the release, or our choice.

    provenance(recipe)  ->  one `Leaf` for each number, with its source

A row of the table names leaves by a pattern and, where it cites, the value cited: it says nothing
about another value, so a changed number needs a row of its own. The first row that fits counts.
"Paper" in brackets marks what is known of it through others who read it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pipelines.recipe import Recipe

SECTIONS = ("expected_concepts", "packing", "training", "midtraining", "ladder")
"""Parts of a recipe whose numbers decide what is learned."""


@dataclass(frozen=True)
class Leaf:
    """One number of a recipe and where it comes from."""

    key: str
    value: object
    source: str


@dataclass(frozen=True)
class _Row:
    pattern: str
    source: str
    values: tuple[object, ...] = ()
    """Values it speaks of; empty: any."""

    def covers(self, key: str, value: object) -> bool:
        return fnmatchcase(key, self.pattern) and (not self.values or value in self.values)


def provenance(recipe: Recipe) -> list[Leaf]:
    """Every number. Raises ValueError for one without a source."""
    dumped = recipe.model_dump(mode="json")
    return [
        Leaf(key, value, _source(key, value))
        for key, value in leaves({section: dumped[section] for section in SECTIONS})
    ]


def leaves(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Dotted keys and values; a list is one value."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _source(key: str, value: object) -> str:
    for row in ROWS:
        if row.covers(key, value):
            return row.source
    raise ValueError(
        f"{key} is {value!r}, and no row of pipelines/provenance.py says where that comes from; "
        f"add one: the place in the paper or the release, or our choice and why"
    )


def _cited(source: str, **values: object) -> Iterator[_Row]:
    """Rows for leaves of any section by their last names, with the values cited."""
    for name, value in values.items():
        each = value if isinstance(value, tuple) else (value,)
        yield _Row(f"*.{name.replace('__', '.')}", source, each)


def _chosen(why: str, *patterns: str) -> Iterator[_Row]:
    for pattern in patterns:
        yield _Row(pattern, f"our choice: {why}")


ROWS: tuple[_Row, ...] = (
    # what is read
    _Row("expected_concepts", "paper §4: the library of 33,732 concepts", (33_732,)),
    *_chosen("a library that costs at most half of the backbone", "expected_concepts"),
    _Row("packing.vocab_size", "release: cl100k_base and four special tokens", (100_281,)),
    *_chosen("a vocabulary in proportion to the network", "packing.vocab_size"),
    _Row("packing.block", "paper §5.2, J.1: blocks of 64", (64,)),
    _Row("packing.max_concepts", "release: 16 concept ids a token", (16,)),
    *_chosen("how text is packed leaves what is learned alone", "packing.*"),
    # the network
    _Row("*.network.width", "release: 4,096", (4_096,)),
    _Row("*.network.n_layers", "release: 32", (32,)),
    _Row("*.network.n_heads", "release: 32", (32,)),
    _Row("*.network.n_kv_heads", "release: 4", (4,)),
    _Row("*.network.mlp_width", "release: 16,384, four times the width", (16_384,)),
    _Row("*.max_length", "paper §8.1: sequences of 4,096", (4_096,)),
    _Row("*.block", "paper §5.2, J.1: blocks of 64", (64,)),
    _Row("*.norm_order", "release: branch outputs are normalised", ("post",)),
    _Row("*.qk_norm", "release", (True,)),
    _Row("*.rotary", "release: base 500,000", (True,)),
    _Row("*.clip_qkv", "release: 10", (10.0,)),
    _Row("*.tied", "release", (True,)),
    _Row("*.rank", "paper J.4: rank 256", (256,)),
    _Row("*.unknown_per_known", "paper J.3: three unknown concepts a known one", (3,)),
    _Row("*.top_k", "paper §5.3; release: 32 at every scale", (32,)),
    _Row("*.top_k_unknown", "release: 128", (128,)),
    _Row("*.known_bias", "release: no biases", (False,)),
    *_chosen("without a bias the OR over a chunk starts saturated", "*.known_bias"),
    _Row("*.network.residual", "paper J.5: the residual is kept", (True,)),
    _Row("*.network.family", "paper §5: CDLM with concepts", ("cdlm_concept",)),
    *_chosen("a rank in proportion to the network", "*.rank"),
    *_chosen("the paper's proportions at a smaller size", "*.network.*"),
    # how long, how much at a time
    _Row("training.*.n_tokens", "paper §9: 1.2e12 tokens", (1_200_000_000_000,)),
    _Row("midtraining.*.n_tokens", "paper §10: 150e9 tokens", (150_000_000_000,)),
    _Row("training.*.n_tokens", "team's blog: 1.2 B parameters at 20e9 tokens", (20_000_000_000,)),
    *_chosen("an eighth or a tenth of pretraining, as in the paper", "midtraining.*.n_tokens"),
    *_chosen("80 tokens a parameter", "training.*.n_tokens"),
    _Row("*.length", "paper §8.1: sequences of 4,096", (4_096,)),
    *_chosen("half of the paper's length, for one accelerator", "*.length"),
    _Row(
        "*.batch_sequences",
        "our choice: the paper's batch is not known; 1,024 × 4,096 makes 286,000 steps", (1_024,),
    ),
    *_chosen("a batch of about half a million tokens or one", "*.batch_sequences"),
    # the optimiser
    *_cited(
        "paper §8.1, app. G: AdamW for all families and sizes",
        optim__beta1=0.9, optim__beta2=0.95, optim__eps=1e-8, optim__weight_decay=0.1,
        optim__clip_norm=1.0, optim__peak_lr=4e-4,
    ),
    _Row("training.*.peak_lr", "our choice: the 8 B network's own rate is not known", (3e-4,)),
    *_chosen("a small network takes more than the sweep's 4e-4", "training.*.peak_lr"),
    *_chosen("mid-training starts anew, well below the peak", "midtraining.*.peak_lr"),
    *_chosen("2,000 steps at 8 B; the paper's warm-up is not known", "training.*.optim.warmup"),
    *_chosen("mid-training starts at its peak and falls to zero", "midtraining.*.optim.warmup",
             "midtraining.*.optim.decay", "midtraining.*.optim.decay_shape",
             "midtraining.*.optim.floor"),
    *_chosen("the paper has a stable and an anneal phase; its length and shape are not known",
             "*.optim.decay", "*.optim.decay_shape", "*.optim.warmup", "*.optim.floor"),
    # noise
    _Row("training.*.noise.kind", "paper §9.2, J.2: a moving Gaussian", ("moving_gaussian",)),
    _Row("midtraining.*.noise.kind", "paper §10: uniform, better than heavy", ("uniform",)),
    _Row("ladder.*.noise.kind", "paper §8.1: uniform in the sweeps", ("uniform",)),
    *_chosen("uniform: the hard end of the moving Gaussian hurt knowledge (paper §9.4)",
             "training.*.noise.kind"),
    *_cited("paper §8.1: rates from 0.05 to 0.95", noise__low=0.05, noise__high=0.95),
    *_cited("paper §9.2: the centre moves from 0.2 to 0.8", noise__centre_first=0.2,
            noise__centre_last=0.8),
    *_cited("paper (K), second hand: 0.3", noise__deviation=0.3),
    _Row("*.noise.heavy_centre", "paper §10: heavy noise at 80%, not used here", (0.8,)),
    *_chosen("not used by these recipes", "*.noise.heavy_*"),
    *_chosen("none, as in the paper", "*.noise.clean_prefix"),
    # steering phases
    *_cited("paper table 36, second hand", interleaving__gain=1.0, objective__respond_weight=1.0,
            objective__express_weight=1.0),
    *_cited("paper §10.2.4, second hand: four phases, one after the other, early",
            interleaving__phases=4, interleaving__gap=0.0),
    _Row("*.interleaving.first_layer", "release: from layer 16 of 32", (0.5,)),
    *_chosen("their length and warm-up are not known", "*.interleaving.*"),
    *_chosen("mid-training alone steers, as in the paper", "*.interleaving"),
    # the objective
    _Row("*.objective.reduction", "our choice: nearest to the paper's unweighted mean",
         ("token_mean",)),
    *_chosen("each block alike: the bound's weights, with less variance", "*.objective.reduction"),
    *_cited("paper (K), second hand: 1", objective__reconstruction_weight=1.0,
            objective__independence_weight=1.0),
    *_chosen("the paper's is not known", "*.objective.concept_weight"),
    _Row("midtraining.*.independence", "paper §10.2.2: a two-term penalty", ("two_term",)),
    *_cited("paper eq. 13-14", objective__independence="known_unknown"),
    *_cited("paper eq. 9-10, second hand: masked tokens vote", objective__or_tokens="masked"),
    *_cited("release, first version: 0.1", objective__known_dropout=0.1),
    _Row("midtraining.*.residual_dropout", "paper §10, second hand: raised to 0.3", (0.3,)),
    *_cited("paper (K), second hand: 0.1", objective__residual_dropout=0.1),
    _Row("midtraining.*.alpha_known.first", "paper §10: from 0.5", (0.5,)),
    _Row("midtraining.*.alpha_known.last", "paper §10: to 0", (0.0,)),
    _Row("midtraining.*.alpha_unknown.*", "paper §10: 0 throughout", (0.0, 1.0, "linear")),
    *_chosen("linear over the whole of mid-training", "midtraining.*.alpha_known.*"),
    _Row("ladder.*.alpha_known.*", "paper tables 25-26: 1 to 0.5 by a cosine in the first tenth",
         (1.0, 0.5, 0.0, 0.1, "cosine")),
    _Row("ladder.*.alpha_unknown.*", "paper tables 25-26: its prose, 1 to 0.5, not its table",
         (1.0, 0.5, 0.0, "linear")),
    _Row("training.*.alpha_known.*", "paper table 33: 1 until 15%, by a cosine to 0.5 at 50%",
         (1.0, 0.5, 0.15, "cosine")),
    _Row("training.*.alpha_unknown.*", "paper table 33: 1 until 25%, linear to 0.5",
         (1.0, 0.5, 0.25, "linear")),
    *_chosen("documents are not kept apart, as in the release", "*.objective.document_mask"),
    _Row("midtraining.*.sparse_from", "paper app. I: heads keep their top-k when annealed", (0.0,)),
    _Row("*.sparse_from", "paper app. I: top-k from the anneal phase on", (0.9,)),
    # the data
    *_chosen("the paper names the sources, not their shares (pipelines/sources.py)",
             "training.domain_weights.*"),
    *_chosen("the paper chose a code-augmented mixture of real web text; its shares are not known",
             "midtraining.domain_weights.*"),
    # the ladder
    *_cited("paper §8.1", families=(["ar", "cdlm", "ar_concept", "cdlm_concept"],),
            tolerance=0.15, evaluation_tokens=100_000_000),
    _Row("ladder.sizes_per_budget", "paper §8.1: four to six", (5,)),
    *_chosen("four budgets as in the paper, whose values are not known", "ladder.budgets_flops"),
    *_chosen("four times those without concepts; the paper says higher",
             "ladder.concept_budgets_flops"),
    *_chosen("10 M to 8 B as in the paper, whose sizes are not known", "ladder.sizes"),
    _Row("ladder.estimators", "paper app. H, two of its four estimators"),
    # where and how it runs: nothing that is learned depends on it
    *_chosen("how it runs, not what is learned", "*.ranks.*", "*.zero.*", "*.micro_batches",
             "*.seed", "*.seeds", "*.dtype", "*.compiled", "*.validations",
             "*.validation_sequences",
             "*.log_every", "*.patience_non_finite", "*.tell_seconds", "*.saving.*",
             "*.gradient_norms_every", "*.continue_from", "*.evaluation_batch_sequences",
             "*.data.location", "*.data.storage.*", "*.data.ahead", "*.data.recent_bytes",
             "*.data.lanes"),
)  # fmt: skip
"""Everything that is known, by the order of a recipe."""
