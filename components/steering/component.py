"""The steering stage as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Checkpoint, GateReport, LiftedWords, SteeringReport, Tokens


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def steer(
    checkpoint: Input[Checkpoint], lifted: Input[LiftedWords], tokens: Input[Tokens],
    checked: Input[GateReport], steering: Output[SteeringReport], config: str, settings: str,
) -> None:  # fmt: skip
    """Amplify and suppress concepts over their range of prevalence; measure effect and cost."""
    from components.runner import run_stage
    from components.steering.config import SteerConfig
    from components.steering.stage import steer as steer_concepts

    inputs = {"checkpoint": checkpoint, "lifted": lifted, "tokens": tokens}
    run_stage(steer_concepts, inputs, [checked], steering,
              SteerConfig.model_validate_json(config), settings)  # fmt: skip
