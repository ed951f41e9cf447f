"""Every number of a run, in Python: a recipe holds one config a stage.

debug    40 documents written for the tests, two layers; no download, no language model
demo     real text of five domains, a language model that tags it, a network of a few million
         parameters; a laptop's half hour
"""

import difflib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from components.atlas.config import ChunkConfig, EmbedConfig, TagConfig
from components.atlas.learning_config import AnnotateConfig, LearnConfig
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.attribution.config import AttributeConfig
from components.corpus.config import CorpusConfig, FolderSource, PackageSource
from components.evaluation.config import EvaluateConfig
from components.gates.config import (
    CheckConfig,
    ChunkBounds,
    ConceptBounds,
    DocumentBounds,
    LabelBounds,
    LiftedBounds,
    TagBounds,
    TokenBounds,
)
from components.index.config import BuildConfig
from components.launch import RanksConfig
from components.midtraining.config import NOISE, OBJECTIVE, MidtrainConfig
from components.packing.config import LiftConfig, PackConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from components.scaling.config import FitConfig, LadderConfig, PointTraining, Size
from components.steering.config import SteerConfig
from components.training.config import TrainConfig
from model.config import NetworkConfig
from model.sampling_config import SamplingConfig
from model.train_config import NoiseConfig, ObjectiveConfig, OptimConfig, TrainingConfig
from pipelines.recipe import Recipe

_TEST_DOCUMENTS = Path(__file__).resolve().parent.parent / "tests" / "data"


def debug() -> Recipe:
    """Two layers, 40 documents, about two minutes on a laptop. The recipe of every test."""
    network = NetworkConfig(
        width=32, n_layers=2, n_heads=4, n_kv_heads=2, mlp_width=64, max_length=64, block=16,
        rank=8, top_k=4, top_k_unknown=8,
    )  # fmt: skip
    training = TrainingConfig(
        n_tokens=30 * 4 * 64, batch_sequences=4, length=64, validations=2, log_every=5,
        optim=OptimConfig(peak_lr=3e-3, warmup=0.1, decay=0.2),
        objective=ObjectiveConfig(reduction="block_mean"),
    )  # fmt: skip
    return Recipe(
        name="debug", summary="40 documents, two layers, about two minutes", seed=0,
        corpus=CorpusConfig(
            sources=(FolderSource.of(_TEST_DOCUMENTS, licence="Apache-2.0"),),
            valid_share=0.15, test_share=0.15,
        ),
        gates=CheckConfig(
            documents=DocumentBounds(min_documents=35),
            chunks=ChunkBounds(min_chunks=80, max_long_share=0.2),
            tags=TagBounds(
                min_tagged_chunks=20, min_distinct_tags=40, min_mean_tags_per_chunk=1.0,
                max_commonest_tag_share=0.8,
            ),
            concepts=ConceptBounds(min_concepts=8, max_prevalence=0.5),
            labels=LabelBounds(
                min_labelled_chunks=60, min_concepts=8, max_commonest_concept_share=0.9
            ),
            lifted=LiftedBounds(min_words=20, min_concepts=5),
            tokens=TokenBounds(min_train_tokens=5_000, min_labelled_share=0.5),
        ),
        chunking=ChunkConfig(
            encoder="hashing", target_min=12, target_max=20, hard_max=40, min_wordpieces=4
        ),
        embedding=EmbedConfig(encoder="hashing"),
        tagging=TagConfig(
            tagger="phrases", encoder="hashing", n_train=60, n_held_out=15
        ),
        library=CanonicaliseConfig(
            encoder="hashing", sweep=(20, 30, 40), max_prevalence=0.5,
            naming=NamingConfig(namer="medoid"),
        ),
        annotator=LearnConfig(
            n_steps=30, n_unlabelled=64, min_prevalence=0.05, max_prevalence=0.3
        ),
        labelling=AnnotateConfig(),
        packing=PackConfig(vocab_size=384, block=16),
        lift=LiftConfig(min_support=2),
        training=TrainConfig(
            network=network, training=training, ranks=RanksConfig(ranks=1, threads=1),
            validation_sequences=8,
        ),
        midtraining=MidtrainConfig(
            training=training.model_copy(
                update={
                    "n_tokens": 8 * 4 * 64, "objective": OBJECTIVE, "noise": NOISE,
                    "optim": OptimConfig(
                        peak_lr=1e-3, warmup=0.0, decay=1.0, decay_shape="linear"
                    ),
                }
            ),
            domain_weights={}, ranks=RanksConfig(ranks=1, threads=1), validation_sequences=8,
        ),
        evaluation=EvaluateConfig(
            length=64, batch_sequences=16, min_positives=3, agreement_tokens=32,
            embedder="hashing",
        ),
        ladder=LadderConfig(
            families=("cdlm",), budgets_flops=(4e8, 8e8),
            sizes=tuple(
                Size(width=width, n_layers=1, n_heads=2, n_kv_heads=1, mlp_width=2 * width)
                for width in (8, 16, 24)
            ),
            training=PointTraining(
                length=64, block=16, batch_sequences=4, rank=4, top_k=4, top_k_unknown=8,
                optim=OptimConfig(peak_lr=1e-2, warmup=0.1, decay=0.2),
            ),
            evaluation_tokens=2_000,
        ),
        fit=FitConfig(bootstrap_draws=30),
        index=BuildConfig(
            length=64, n_fitted=100, n_held_back=15, n_held_out=15, hidden_width=32, n_steps=60,
            batch_pairs=32, recall_queries=30,
        ),
        attribution=AttributeConfig(
            n_prompts=3, prompt_tokens_least=5, prompt_tokens_most=9, input_targets=3, n_nodes=4,
            sampling=SamplingConfig(n_new=12, temperature=0.7, top_p=0.9),
        ),
        steering=SteerConfig(
            n_concepts=3, strengths=(0.0, 16.0), n_neutral=1, n_about=1, prompt_tokens=5,
            min_words=1, sampling=SamplingConfig(n_new=10, temperature=0.8, top_p=0.9),
        ),
        registry=PromoteConfig(name="clearstory-debug"),
        report=ReportConfig(recipe="debug"),
    )  # fmt: skip


def demo() -> Recipe:
    """Real text, a language model that tags it, a few million parameters: a laptop's half hour."""
    encoder = "minilm-int8"
    network = NetworkConfig(
        width=256, n_layers=4, n_heads=4, n_kv_heads=2, mlp_width=768, max_length=256, block=32,
        rank=32,
    )  # fmt: skip
    training = TrainingConfig(
        n_tokens=2_200_000, batch_sequences=12, length=256, validations=4,
        optim=OptimConfig(peak_lr=2e-3, warmup=0.03, decay=0.2),
        noise=NoiseConfig(),
        objective=ObjectiveConfig(reduction="block_mean", sparse_from=0.8),
    )  # fmt: skip
    return Recipe(
        name="demo", seed=0,
        summary="5 MB of text, a library of 150 concepts or more, 2.5 M training tokens, "
        "about 25 minutes on two cores",
        corpus=CorpusConfig(
            max_chars=12_000,
            sources=tuple(
                PackageSource(reader=reader, max_bytes=max_bytes)
                for reader, max_bytes in (
                    ("encyclopedia", 1_100_000), ("literature", 900_000), ("medicine", 800_000),
                    ("mathematics", 900_000), ("code", 900_000),
                )
            ),
        ),
        gates=CheckConfig(),
        chunking=ChunkConfig(encoder=encoder),
        embedding=EmbedConfig(encoder=encoder),
        tagging=TagConfig(tagger="language_model", encoder=encoder),
        library=CanonicaliseConfig(
            encoder=encoder, sweep=(260, 300, 340, 380),
            naming=NamingConfig(namer="language_model"),
        ),
        annotator=LearnConfig(),
        labelling=AnnotateConfig(),
        packing=PackConfig(vocab_size=4_096, block=32),
        lift=LiftConfig(min_support=4),
        training=TrainConfig(network=network, training=training),
        midtraining=MidtrainConfig(
            training=training.model_copy(
                update={
                    "n_tokens": 300_000, "objective": OBJECTIVE, "noise": NOISE, "validations": 2,
                    "optim": OptimConfig(
                        peak_lr=5e-4, warmup=0.0, decay=1.0, decay_shape="linear"
                    ),
                }
            ),
            domain_weights={
                "encyclopedia": 0.2, "literature": 0.15, "medicine": 0.15, "mathematics": 0.25,
                "code": 0.25,
            },
        ),
        evaluation=EvaluateConfig(
            length=256, embedder=encoder, batch_sequences=16, max_tokens=100_000
        ),
        ladder=LadderConfig(
            families=("cdlm", "cdlm_concept"), budgets_flops=(1.5e11, 4.5e11),
            sizes=tuple(
                Size(width=width, n_layers=2, n_heads=2, n_kv_heads=1, mlp_width=4 * width)
                for width in (24, 48, 96)
            ),
            training=PointTraining(
                length=128, block=32, batch_sequences=4, rank=8,
                top_k=16,
                top_k_unknown=32,
                optim=OptimConfig(peak_lr=6e-3, warmup=0.05, decay=0.2),
            ),
            evaluation_tokens=40_000,
        ),
        fit=FitConfig(),
        index=BuildConfig(length=256, n_fitted=1_200, n_held_back=200, n_held_out=200),
        attribution=AttributeConfig(
            sampling=SamplingConfig(
                n_new=64, temperature=0.7, top_p=0.9, repetition_penalty=1.2
            ),
        ),
        steering=SteerConfig(
            strengths=(0.0, 8.0, 16.0),
            sampling=SamplingConfig(
                n_new=32, temperature=0.8, top_p=0.9, repetition_penalty=1.2
            ),
        ),
        registry=PromoteConfig(name="clearstory-demo"),
        report=ReportConfig(recipe="demo"),
    )  # fmt: skip


RECIPES: dict[str, Callable[[], Recipe]] = {"debug": debug, "demo": demo}
"""Every recipe by name."""


def named(name: str) -> Recipe:
    """The recipe of this name. Raises ValueError with the nearest name."""
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r}. {nearest(name, sorted(RECIPES))}")
    return RECIPES[name]()


def changed(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with some of its numbers changed, each given as KEY=VALUE with dots between."""
    values = recipe.model_dump(mode="json")
    known = _keys(values)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"{setting!r} is not KEY=VALUE, for example training.training.seed=1")
        if key not in known:
            raise ValueError(f"There is no {key} in the recipe. {nearest(key, sorted(known))}")
        place, last = known[key]
        place[last] = _parsed(text)
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{', '.join(settings)} does not fit the recipe: {error}") from error


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for a name that is not known."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    shown = close or list(known)[:10]
    return f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(shown)}."


def _keys(values: dict[str, object], prefix: str = "") -> dict[str, tuple[dict[str, object], str]]:
    """Every dotted key, with the dictionary its value lies in and its name there."""
    found: dict[str, tuple[dict[str, object], str]] = {}
    for name, value in values.items():
        found[f"{prefix}{name}"] = (values, name)
        if isinstance(value, dict):
            found |= _keys(value, f"{prefix}{name}.")
    return found


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
