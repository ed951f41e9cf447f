"""The registry stage as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Checkpoint, ModelVersion, Scores


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def promote(
    checkpoint: Input[Checkpoint], scores: Input[Scores], version: Output[ModelVersion],
    config: str, settings: str,
) -> None:  # fmt: skip
    """Offer a checkpoint with its scores as a candidate version."""
    from components.registry.config import PromoteConfig
    from components.registry.stage import promote as promote_checkpoint
    from components.runner import run_stage

    run_stage(promote_checkpoint, {"checkpoint": checkpoint, "scores": scores}, [], version,
              PromoteConfig.model_validate_json(config), settings)  # fmt: skip
