"""The gate as a KFP component."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import GateReport


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def check(
    artifact: Input[dsl.Artifact], report: Output[GateReport], config: str, settings: str
) -> None:
    """Check an artifact against its contract; the next stage needs the report."""
    from components.gates.config import CheckConfig
    from components.gates.stage import check as check_artifact
    from components.runner import manifest_at, run_stage

    task = f"check-{manifest_at(artifact).contract.lower()}"
    run_stage(check_artifact, {"artifact": artifact}, [], report,
              CheckConfig.model_validate_json(config), settings, task=task)  # fmt: skip
