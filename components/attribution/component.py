"""The attribution stage as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import artifacts, images


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def attribute(
    checkpoint: Input[artifacts.Checkpoint], index: Input[artifacts.Index],
    names: Input[artifacts.UnknownNames], tokens: Input[artifacts.Tokens],
    documents: Input[artifacts.Documents], chunks: Input[artifacts.Chunks],
    checked: Input[artifacts.GateReport],
    attributions: Output[artifacts.Attributions], config: str, settings: str,
) -> None:  # fmt: skip
    """Generate from held-out openings and trace every token."""
    from components.attribution.config import AttributeConfig
    from components.attribution.stage import attribute as attribute_texts
    from components.runner import run_stage

    inputs = {"checkpoint": checkpoint, "index": index, "names": names, "tokens": tokens,
              "documents": documents, "chunks": chunks}  # fmt: skip
    run_stage(attribute_texts, inputs, [checked], attributions,
              AttributeConfig.model_validate_json(config), settings)  # fmt: skip
