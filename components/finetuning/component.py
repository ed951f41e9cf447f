"""Fine-tuning as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Annotator, Checkpoint, Curve, GateReport, Messages, Scores


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def finetune(
    messages: Input[Messages], checkpoint: Input[Checkpoint], annotator: Input[Annotator],
    checked: Input[GateReport], finetuned: Output[Checkpoint], curve: Output[Curve],
    scores: Output[Scores], config: str, settings: str,
) -> None:  # fmt: skip
    """Teach a checkpoint to answer, and measure it on held-out answers before and after."""
    from components.finetuning.config import FinetuneConfig
    from components.finetuning.stage import finetune as finetune_network
    from components.runner import run_stage

    inputs = {"messages": messages, "checkpoint": checkpoint, "annotator": annotator}
    outputs = {"finetuned": finetuned, "curve": curve, "scores": scores}
    run_stage(finetune_network, inputs, [checked], outputs,
              FinetuneConfig.model_validate_json(config), settings)  # fmt: skip
