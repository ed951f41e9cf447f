"""Mid-training as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Checkpoint, Curve, GateReport, LiftedWords, Tokens


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def midtrain(
    tokens: Input[Tokens], checkpoint: Input[Checkpoint], lifted: Input[LiftedWords],
    checked: Input[GateReport],
    midtrained: Output[Checkpoint], curve: Output[Curve], config: str, settings: str,
) -> None:  # fmt: skip
    """Go on training a checkpoint under another mixture, without teacher forcing."""
    from components.midtraining.config import MidtrainConfig
    from components.midtraining.stage import midtrain as midtrain_network
    from components.runner import run_stage

    inputs = {"tokens": tokens, "checkpoint": checkpoint, "lifted": lifted}
    run_stage(midtrain_network, inputs, [checked], {"midtrained": midtrained, "curve": curve},
              MidtrainConfig.model_validate_json(config), settings)  # fmt: skip
