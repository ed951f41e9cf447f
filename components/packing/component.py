"""The KFP faces of packing."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import (
    Chunks,
    Concepts,
    Documents,
    GateReport,
    Labels,
    LiftedWords,
    Tokens,
)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def pack(
    documents: Input[Documents], chunks: Input[Chunks], concepts: Input[Concepts],
    labels: Input[Labels], documents_checked: Input[GateReport], labels_checked: Input[GateReport],
    tokens: Output[Tokens], config: str, settings: str,
) -> None:  # fmt: skip
    """Tokenise and pack the documents, and align labels to tokens."""
    from components.packing.config import PackConfig
    from components.packing.stage import pack
    from components.runner import run_stage

    inputs = {"documents": documents, "chunks": chunks, "concepts": concepts, "labels": labels}
    run_stage(pack, inputs, [documents_checked, labels_checked], tokens,
              PackConfig.model_validate_json(config), settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def lift(
    tokens: Input[Tokens], concepts: Input[Concepts], checked: Input[GateReport],
    lifted: Output[LiftedWords], config: str, settings: str,
) -> None:  # fmt: skip
    """Find the words that set each concept's chunks apart."""
    from components.packing.config import LiftConfig
    from components.packing.lift import lift
    from components.runner import run_stage

    run_stage(lift, {"tokens": tokens, "concepts": concepts}, [checked], lifted,
              LiftConfig.model_validate_json(config), settings)  # fmt: skip
