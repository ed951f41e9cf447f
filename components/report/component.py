"""The report as a KFP component. The page is the one body that KFP carries, to show it."""

from kfp import dsl
from kfp.dsl import HTML, Input, Output

from components import artifacts, images


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def report(
    documents: Input[artifacts.Documents], concepts: Input[artifacts.Concepts],
    labels: Input[artifacts.Labels], curve: Input[artifacts.Curve],
    midtraining_curve: Input[artifacts.Curve], scores: Input[artifacts.Scores],
    fit: Input[artifacts.ScalingFit], attributions: Input[artifacts.Attributions],
    steering: Input[artifacts.SteeringReport], version: Input[artifacts.ModelVersion],
    judged: Input[artifacts.Scores],
    report: Output[artifacts.Report], page: Output[HTML], config: str, settings: str,
    finetuning: Input[artifacts.Scores] | None = None,
) -> None:  # fmt: skip
    """Tell the run on one page."""
    from components.report.config import ReportConfig
    from components.report.stage import report as tell
    from components.report.stage import show
    from components.runner import run_stage

    inputs = {"documents": documents, "concepts": concepts, "labels": labels, "curve": curve,
              "midtraining_curve": midtraining_curve, "scores": scores, "fit": fit,
              "attributions": attributions, "steering": steering, "version": version,
              "judged": judged,
              "finetuning": [] if finetuning is None else [finetuning]}  # fmt: skip
    run_stage(tell, inputs, [], report, ReportConfig.model_validate_json(config), settings)
    show(report.path, page.path)
