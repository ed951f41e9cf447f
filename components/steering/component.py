"""The steering stage as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import (
    Annotator,
    Calibration,
    Checkpoint,
    GateReport,
    LiftedWords,
    SteeringReport,
    Tokens,
)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def steer(
    checkpoint: Input[Checkpoint], pretrained: Input[Checkpoint], annotator: Input[Annotator],
    lifted: Input[LiftedWords], tokens: Input[Tokens], checked: Input[GateReport],
    steering: Output[SteeringReport], calibration: Output[Calibration], config: str, settings: str,
) -> None:  # fmt: skip
    """Amplify and suppress concepts over their range of prevalence; measure effect and cost."""
    from components.runner import run_stage
    from components.steering.config import SteerConfig
    from components.steering.stage import steer as steer_concepts

    inputs = {"checkpoint": checkpoint, "pretrained": pretrained, "annotator": annotator,
              "lifted": lifted, "tokens": tokens}  # fmt: skip
    run_stage(steer_concepts, inputs, [checked], {"steering": steering, "calibration": calibration},
              SteerConfig.model_validate_json(config), settings)  # fmt: skip
