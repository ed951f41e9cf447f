"""The naming stage as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import (
    Checkpoint,
    Chunks,
    Documents,
    GateReport,
    Tokens,
    UnknownNames,
    Vectors,
)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def name(
    checkpoint: Input[Checkpoint], tokens: Input[Tokens], documents: Input[Documents],
    chunks: Input[Chunks], vectors: Input[Vectors], checked: Input[GateReport],
    names: Output[UnknownNames], config: str, settings: str,
) -> None:  # fmt: skip
    """Name the unknown concepts that contribute most, where a name holds on held-out text."""
    from components.naming.config import NameConfig
    from components.naming.stage import name as name_concepts
    from components.runner import run_stage

    inputs = {
        "checkpoint": checkpoint, "tokens": tokens, "documents": documents, "chunks": chunks,
        "vectors": vectors,
    }  # fmt: skip
    run_stage(name_concepts, inputs, [checked], names,
              NameConfig.model_validate_json(config), settings)  # fmt: skip
