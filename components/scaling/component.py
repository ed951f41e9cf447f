"""The scaling study as KFP components."""

from kfp import dsl
from kfp.dsl import Artifact, Input, Output

from components import images
from components.artifacts import Concepts, Curve, GateReport, ScalingFit, Tokens


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def measure(
    tokens: Input[Tokens], concepts: Input[Concepts], checked: Input[GateReport],
    curve: Output[Curve], config: str, settings: str,
) -> None:  # fmt: skip
    """Train one point of the ladder to its budget and measure its held-out loss."""
    from components.runner import run_stage
    from components.scaling.config import ScalePoint
    from components.scaling.point import measure as measure_point

    point = ScalePoint.model_validate_json(config)
    run_stage(measure_point, {"tokens": tokens, "concepts": concepts}, [checked], curve, point,
              settings, task=f"measure-{point.name}")  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def fit(
    curves: Input[list[Artifact]], fit: Output[ScalingFit], config: str, settings: str
) -> None:  # fmt: skip
    """Fit scaling laws to the points of a ladder, with intervals and caveats."""
    from components.runner import run_stage
    from components.scaling.config import FitConfig
    from components.scaling.stage import fit as fit_laws

    run_stage(fit_laws, {"curves": curves}, [], fit,
              FitConfig.model_validate_json(config), settings)  # fmt: skip
