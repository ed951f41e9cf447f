"""The index stage as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Checkpoint, Chunks, Documents, GateReport, Index, Tokens, Vectors


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def build(
    checkpoint: Input[Checkpoint], tokens: Input[Tokens], documents: Input[Documents],
    chunks: Input[Chunks], vectors: Input[Vectors], checked: Input[GateReport],
    index: Output[Index], config: str, settings: str,
) -> None:  # fmt: skip
    """Index the training chunks and fit the way from the network's states to them."""
    from components.index.config import BuildConfig
    from components.index.stage import build as build_index
    from components.runner import run_stage

    inputs = {
        "checkpoint": checkpoint, "tokens": tokens, "documents": documents, "chunks": chunks,
        "vectors": vectors,
    }  # fmt: skip
    run_stage(build_index, inputs, [checked], index, BuildConfig.model_validate_json(config),
              settings)  # fmt: skip
