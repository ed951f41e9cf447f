"""The life cycle as a DAG: corpus to report, with a gate after every data stage.

A config travels as JSON text, so a stage's key holds exactly what it was told. A gate's report is
an input of the stages that read the data: they cannot start without it.
"""

from dataclasses import dataclass

from kfp import dsl
from kfp.dsl.graph_component import GraphComponent
from kfp.dsl.pipeline_channel import PipelineChannel

from components.atlas.component import annotate, canonicalise, chunk, embed, judge, learn, tag
from components.attribution.component import attribute
from components.corpus.component import converse, ingest
from components.evaluation.component import evaluate
from components.finetuning.component import finetune
from components.gates.component import check
from components.index.component import build
from components.midtraining.component import midtrain
from components.naming.component import name
from components.packing.component import lift, pack
from components.registry.component import promote
from components.report.component import report
from components.scaling.component import fit, measure
from components.scaling.ladder import plan
from components.steering.component import steer
from components.training.component import train
from pipelines.recipe import Recipe
from pipelines.resources import LARGE, SMALL, place

PARALLEL_POINTS = 2
"""Points of the ladder that train at once."""


@dataclass(frozen=True)
class Atlas:
    """What the data side of the DAG hands to the rest."""

    documents: PipelineChannel
    chunks: PipelineChannel
    vectors: PipelineChannel
    tags: PipelineChannel
    concepts: PipelineChannel
    annotator: PipelineChannel
    labels: PipelineChannel
    documents_checked: PipelineChannel
    labels_checked: PipelineChannel


@dataclass(frozen=True)
class Packed:
    """The token stream, its gate and each concept's words."""

    tokens: PipelineChannel
    checked: PipelineChannel
    lifted: PipelineChannel


def lifecycle(recipe: Recipe) -> GraphComponent:
    """The pipeline of one recipe; its only parameter is where the run happens (`Settings`)."""

    @dsl.pipeline(name=f"lifecycle-{recipe.name}", description=f"Life cycle of {recipe.name}")
    def dag(settings: str) -> None:
        atlas = _atlas(recipe, settings)
        packed = _packed(recipe, atlas, settings)
        stream = {"tokens": packed.tokens, "checked": packed.checked, "settings": settings}
        pretrained = train(
            **stream, concepts=atlas.concepts, config=recipe.training.model_dump_json()
        )
        place(pretrained, LARGE)
        midtrained = midtrain(
            **stream, checkpoint=pretrained.outputs["checkpoint"], lifted=packed.lifted,
            config=recipe.midtraining.model_dump_json(),
        )  # fmt: skip
        place(midtrained, LARGE)
        checkpoint = midtrained.outputs["midtrained"]
        scored = evaluate(
            **stream, checkpoint=checkpoint, config=recipe.evaluation.model_dump_json()
        )
        place(scored, LARGE)
        law = _ladder(recipe, atlas, packed, settings)
        attributions = _attributions(recipe, atlas, packed, checkpoint, settings)
        steered = steer(
            **stream, checkpoint=checkpoint, pretrained=pretrained.outputs["checkpoint"],
            annotator=atlas.annotator, lifted=packed.lifted,
            config=recipe.steering.model_dump_json(),
        )  # fmt: skip
        place(steered, LARGE)
        version = promote(
            checkpoint=checkpoint, scores=scored.outputs["scores"],
            config=recipe.registry.model_dump_json(), settings=settings,
        )  # fmt: skip
        place(version, SMALL)
        page = report(
            documents=atlas.documents, concepts=atlas.concepts, labels=atlas.labels,
            curve=pretrained.outputs["curve"], midtraining_curve=midtrained.outputs["curve"],
            scores=scored.outputs["scores"], fit=law, attributions=attributions,
            steering=steered.outputs["steering"], version=version.outputs["version"],
            judged=_judged(recipe, atlas, settings),
            config=recipe.report.model_dump_json(), settings=settings,
            **_finetuned(recipe, atlas, checkpoint, settings),
        )  # fmt: skip
        place(page, SMALL)

    return dag


def _atlas(recipe: Recipe, settings: str) -> Atlas:
    """Documents, chunks, tags, the concept library and the labels of every chunk."""
    corpus = ingest(config=recipe.corpus.model_dump_json(), settings=settings)
    place(corpus, SMALL)
    documents = corpus.outputs["documents"]
    documents_checked = _checked(recipe, documents, settings)
    chunked = chunk(
        documents=documents, checked=documents_checked,
        config=recipe.chunking.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(chunked, SMALL)
    chunks = chunked.outputs["chunks"]
    chunks_checked = _checked(recipe, chunks, settings)
    text = {"documents": documents, "chunks": chunks, "checked": chunks_checked}
    embedded = embed(**text, config=recipe.embedding.model_dump_json(), settings=settings)
    place(embedded, LARGE)
    vectors = embedded.outputs["vectors"]
    tagged = tag(
        **text, vectors=vectors, config=recipe.tagging.model_dump_json(), settings=settings
    )
    place(tagged, LARGE)
    tags = tagged.outputs["tags"]
    tags_checked = _checked(recipe, tags, settings)
    library = canonicalise(
        tags=tags, chunks=chunks, checked=tags_checked,
        config=recipe.library.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(library, LARGE)
    concepts = library.outputs["concepts"]
    learned = learn(
        documents=documents, chunks=chunks, vectors=vectors, tags=tags, concepts=concepts,
        checked=_checked(recipe, concepts, settings),
        config=recipe.annotator.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(learned, SMALL)
    annotator = learned.outputs["annotator"]
    labelled = annotate(
        documents=documents, chunks=chunks, vectors=vectors, annotator=annotator,
        config=recipe.labelling.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(labelled, SMALL)
    labels = labelled.outputs["labels"]
    return Atlas(
        documents, chunks, vectors, tags, concepts, annotator, labels, documents_checked,
        _checked(recipe, labels, settings),
    )  # fmt: skip


def _judged(recipe: Recipe, atlas: Atlas, settings: str) -> PipelineChannel:
    """What a judge says of tags, concepts and labels."""
    judged = judge(
        documents=atlas.documents, chunks=atlas.chunks, tags=atlas.tags, concepts=atlas.concepts,
        labels=atlas.labels, checked=atlas.labels_checked,
        config=recipe.judging.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(judged, SMALL)
    return judged.outputs["judged"]


def _packed(recipe: Recipe, atlas: Atlas, settings: str) -> Packed:
    """The token stream with labels aligned to it, and the words each concept lifts."""
    packed = pack(
        documents=atlas.documents, chunks=atlas.chunks, concepts=atlas.concepts,
        labels=atlas.labels, documents_checked=atlas.documents_checked,
        labels_checked=atlas.labels_checked,
        config=recipe.packing.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(packed, SMALL)
    tokens = packed.outputs["tokens"]
    checked = _checked(recipe, tokens, settings)
    lifted = lift(
        tokens=tokens, concepts=atlas.concepts, checked=checked,
        config=recipe.lift.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(lifted, SMALL)
    return Packed(tokens, checked, lifted.outputs["lifted"])


def _ladder(recipe: Recipe, atlas: Atlas, packed: Packed, settings: str) -> PipelineChannel:
    """Many small runs, and the law that is fitted to their curves."""
    points = [point.model_dump_json() for point in plan(recipe.ladder)]
    with dsl.ParallelFor(items=points, parallelism=PARALLEL_POINTS) as point:
        measured = measure(
            tokens=packed.tokens, concepts=atlas.concepts, checked=packed.checked,
            config=point, settings=settings,
        )  # fmt: skip
        place(measured, LARGE)
    fitted = fit(
        curves=dsl.Collected(measured.outputs["curve"]),
        config=recipe.fit.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(fitted, SMALL)
    return fitted.outputs["fit"]


def _attributions(
    recipe: Recipe, atlas: Atlas, packed: Packed, checkpoint: PipelineChannel, settings: str
) -> PipelineChannel:
    """The index of training chunks, and generated text traced to it, to concepts and to inputs."""
    text = {"documents": atlas.documents, "chunks": atlas.chunks, "settings": settings}
    stream = {"tokens": packed.tokens, "checked": packed.checked, "checkpoint": checkpoint}
    built = build(**text, **stream, vectors=atlas.vectors, config=recipe.index.model_dump_json())
    place(built, LARGE)
    named = name(**text, **stream, vectors=atlas.vectors, config=recipe.naming.model_dump_json())
    place(named, LARGE)
    traced = attribute(
        **text, **stream, index=built.outputs["index"], names=named.outputs["names"],
        config=recipe.attribution.model_dump_json(),
    )  # fmt: skip
    place(traced, LARGE)
    return traced.outputs["attributions"]


def _finetuned(
    recipe: Recipe, atlas: Atlas, checkpoint: PipelineChannel, settings: str
) -> dict[str, PipelineChannel]:
    """What fine-tuning adds to the report's inputs; nothing where the recipe has none."""
    if recipe.conversations is None or recipe.finetuning is None:
        return {}
    conversed = converse(config=recipe.conversations.model_dump_json(), settings=settings)
    place(conversed, SMALL)
    messages = conversed.outputs["messages"]
    finetuned = finetune(
        messages=messages, checkpoint=checkpoint, annotator=atlas.annotator,
        checked=_checked(recipe, messages, settings),
        config=recipe.finetuning.model_dump_json(), settings=settings,
    )  # fmt: skip
    place(finetuned, LARGE)
    return {"finetuning": finetuned.outputs["scores"]}


def _checked(recipe: Recipe, artifact: PipelineChannel, settings: str) -> PipelineChannel:
    """The gate report of one artifact."""
    gate = check(artifact=artifact, config=recipe.gates.model_dump_json(), settings=settings)
    gate.set_display_name(f"check {artifact.name}")
    place(gate, SMALL)
    return gate.outputs["report"]
