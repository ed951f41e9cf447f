"""The human study as KFP components; people answer between `draw`, `pair` and `analyse`."""

from kfp import dsl
from kfp.dsl import Input, Output

from components import images
from components.artifacts import Answers, Concepts, LiftedWords, Study, StudyAnalysis, Tokens


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def draw(
    concepts: Input[Concepts], lifted: Input[LiftedWords], tokens: Input[Tokens],
    study: Output[Study], config: str, settings: str,
) -> None:  # fmt: skip
    """Draw concepts and write the questionnaires of phase 1."""
    from components.runner import run_stage
    from components.study.config import DrawConfig
    from components.study.drawing import draw as draw_study

    inputs = {"concepts": concepts, "lifted": lifted, "tokens": tokens}
    run_stage(draw_study, inputs, [], study, DrawConfig.model_validate_json(config), settings)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def collect(study: Input[Study], answers: Output[Answers], config: str, settings: str) -> None:
    """Read back what raters sent."""
    from components.runner import run_stage
    from components.study.collecting import collect as read_back
    from components.study.config import CollectConfig

    run_stage(read_back, {"study": study}, [], answers,
              CollectConfig.model_validate_json(config), settings)  # fmt: skip


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def pair(
    study: Input[Study], answers: Input[Answers], concepts: Input[Concepts],
    paired: Output[Study], config: str, settings: str,
) -> None:  # fmt: skip
    """Write the questionnaires of phase 2: three blinded names a concept."""
    from components.runner import run_stage
    from components.study.config import PairConfig
    from components.study.pairing import pair as pair_names

    inputs = {"study": study, "answers": answers, "concepts": concepts}
    run_stage(pair_names, inputs, [], paired, PairConfig.model_validate_json(config), settings)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def analyse(
    named: Input[Answers], rated: Input[Answers], analysis: Output[StudyAnalysis],
    config: str, settings: str,
) -> None:  # fmt: skip
    """Analyse both phases."""
    from components.runner import run_stage
    from components.study.analysis import analyse as analyse_answers
    from components.study.config import AnalyseConfig

    run_stage(analyse_answers, {"named": named, "rated": [rated]}, [], analysis,
              AnalyseConfig.model_validate_json(config), settings)  # fmt: skip
