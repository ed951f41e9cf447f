"""The KFP faces of Atlas: chunk, embed, tag, canonicalise, learn, annotate, judge."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import (
    Annotator,
    Chunks,
    Concepts,
    Documents,
    GateReport,
    Labels,
    Scores,
    Tags,
    Vectors,
)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def chunk(
    documents: Input[Documents], checked: Input[GateReport], chunks: Output[Chunks],
    config: str, settings: str,
) -> None:  # fmt: skip
    """Cut every document into chunks."""
    from components.atlas.chunking import chunk
    from components.atlas.config import ChunkConfig
    from components.runner import run_stage

    run_stage(chunk, {"documents": documents}, [checked], chunks,
              ChunkConfig.model_validate_json(config), settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def embed(
    documents: Input[Documents], chunks: Input[Chunks], checked: Input[GateReport],
    vectors: Output[Vectors], config: str, settings: str,
) -> None:  # fmt: skip
    """Encode every chunk."""
    from components.atlas.config import EmbedConfig
    from components.atlas.vectors import embed
    from components.runner import run_stage

    run_stage(embed, {"documents": documents, "chunks": chunks}, [checked], vectors,
              EmbedConfig.model_validate_json(config), settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def tag(
    documents: Input[Documents], chunks: Input[Chunks], vectors: Input[Vectors],
    checked: Input[GateReport], tags: Output[Tags], config: str, settings: str,
) -> None:  # fmt: skip
    """Tag a sample of the chunks."""
    from components.atlas.config import TagConfig
    from components.atlas.tagging import tag
    from components.runner import run_stage

    run_stage(tag, {"documents": documents, "chunks": chunks, "vectors": vectors}, [checked],
              tags, TagConfig.model_validate_json(config), settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def canonicalise(
    tags: Input[Tags], chunks: Input[Chunks], checked: Input[GateReport],
    concepts: Output[Concepts], config: str, settings: str,
) -> None:  # fmt: skip
    """Make the library of concepts out of the tags."""
    from components.atlas.canonicalisation import canonicalise
    from components.atlas.library_config import CanonicaliseConfig
    from components.runner import run_stage

    run_stage(canonicalise, {"tags": tags, "chunks": chunks}, [checked], concepts,
              CanonicaliseConfig.model_validate_json(config), settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def learn(
    documents: Input[Documents], chunks: Input[Chunks], vectors: Input[Vectors], tags: Input[Tags],
    concepts: Input[Concepts], checked: Input[GateReport], annotator: Output[Annotator],
    config: str, settings: str,
) -> None:  # fmt: skip
    """Learn from the tagged sample which concepts a chunk carries."""
    from components.atlas.learning import learn
    from components.atlas.learning_config import LearnConfig
    from components.runner import run_stage

    inputs = {"documents": documents, "chunks": chunks, "vectors": vectors, "tags": tags,
              "concepts": concepts}  # fmt: skip
    run_stage(learn, inputs, [checked], annotator, LearnConfig.model_validate_json(config),
              settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def annotate(
    documents: Input[Documents], chunks: Input[Chunks], vectors: Input[Vectors],
    annotator: Input[Annotator], labels: Output[Labels], config: str, settings: str,
) -> None:  # fmt: skip
    """Label every chunk of the corpus with the concepts it carries."""
    from components.atlas.labelling import annotate
    from components.atlas.labelling_config import AnnotateConfig
    from components.runner import run_stage

    inputs = {"documents": documents, "chunks": chunks, "vectors": vectors, "annotator": annotator}
    run_stage(annotate, inputs, [], labels, AnnotateConfig.model_validate_json(config),
              settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def judge(
    documents: Input[Documents], chunks: Input[Chunks], tags: Input[Tags],
    concepts: Input[Concepts], labels: Input[Labels], checked: Input[GateReport],
    judged: Output[Scores], config: str, settings: str,
) -> None:  # fmt: skip
    """Judge a sample of what was said about chunks."""
    from components.atlas.judging import judge
    from components.atlas.judging_config import JudgeConfig
    from components.runner import run_stage

    inputs = {"documents": documents, "chunks": chunks, "tags": tags, "concepts": concepts,
              "labels": labels}  # fmt: skip
    run_stage(judge, inputs, [checked], judged, JudgeConfig.model_validate_json(config), settings)
