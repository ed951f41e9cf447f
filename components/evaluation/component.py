"""Evaluation as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Checkpoint, GateReport, Scores, Tokens


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def evaluate(
    checkpoint: Input[Checkpoint], tokens: Input[Tokens], checked: Input[GateReport],
    scores: Output[Scores], config: str, settings: str,
) -> None:  # fmt: skip
    """Measure capability and interpretability on held-out text."""
    from components.evaluation.config import EvaluateConfig
    from components.evaluation.stage import evaluate as measure_checkpoint
    from components.runner import run_stage

    run_stage(measure_checkpoint, {"checkpoint": checkpoint, "tokens": tokens}, [checked], scores,
              EvaluateConfig.model_validate_json(config), settings)  # fmt: skip
