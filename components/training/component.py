"""Training as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Checkpoint, Concepts, Curve, GateReport, Tokens


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def train(
    tokens: Input[Tokens], concepts: Input[Concepts], checked: Input[GateReport],
    checkpoint: Output[Checkpoint], curve: Output[Curve], config: str, settings: str,
) -> None:  # fmt: skip
    """Train the network from fresh weights."""
    from components.runner import run_stage
    from components.training.config import TrainConfig
    from components.training.stage import train as train_network

    run_stage(train_network, {"tokens": tokens, "concepts": concepts}, [checked],
              {"checkpoint": checkpoint, "curve": curve},
              TrainConfig.model_validate_json(config), settings)  # fmt: skip
