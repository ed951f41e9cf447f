"""The human study as three DAGs: people answer between them, so no DAG can hold them all.

    study-draw       concepts, lifted words, tokens of a run   -> questionnaires of phase 1
    study-pair       what came back                            -> questionnaires of phase 2
    study-analyse    what came back                            -> figures and page

Artifacts of earlier runs come in by the URI that KFP shows of them. Where the raters' files lie is
known once they are there: the config of `collect` is a parameter.

python -m pipelines.study build        writes the three as IR YAML
"""

import sys
from pathlib import Path

from kfp import dsl
from kfp.dsl.graph_component import GraphComponent
from kfp.dsl.pipeline_channel import PipelineChannel

from components.study.component import analyse, collect, draw, pair
from components.study.config import AnalyseConfig, DrawConfig, PairConfig
from pipelines.compile import write_ir
from pipelines.resources import SMALL, place


def drawing(config: DrawConfig) -> GraphComponent:
    """Phase 1 out of a finished run."""

    @dsl.pipeline(name="study-draw", description="Draw concepts for people to recognise")
    def dag(concepts: str, lifted: str, tokens: str, settings: str) -> None:
        drawn = draw(
            concepts=_given(concepts), lifted=_given(lifted), tokens=_given(tokens),
            config=config.model_dump_json(), settings=settings,
        )  # fmt: skip
        place(drawn, SMALL)

    return dag


def pairing(config: PairConfig) -> GraphComponent:
    """Phase 2 out of the answers of phase 1."""

    @dsl.pipeline(name="study-pair", description="Read names back, set three side by side")
    def dag(study: str, concepts: str, returned: str, settings: str) -> None:
        drawn = _given(study)
        named = collect(study=drawn, config=returned, settings=settings)
        place(named, SMALL)
        paired = pair(
            study=drawn, answers=named.outputs["answers"], concepts=_given(concepts),
            config=config.model_dump_json(), settings=settings,
        )  # fmt: skip
        place(paired, SMALL)

    return dag


def analysing(config: AnalyseConfig) -> GraphComponent:
    """Figures out of the answers of both phases."""

    @dsl.pipeline(name="study-analyse", description="Read fits back, analyse both phases")
    def dag(paired: str, named: str, returned: str, settings: str) -> None:
        rated = collect(study=_given(paired), config=returned, settings=settings)
        place(rated, SMALL)
        analysed = analyse(
            named=_given(named), rated=rated.outputs["answers"],
            config=config.model_dump_json(), settings=settings,
        )  # fmt: skip
        place(analysed, SMALL)

    return dag


def every() -> dict[str, GraphComponent]:
    """The three at the published design, by name."""
    return {
        "study-draw": drawing(DrawConfig()),
        "study-pair": pairing(PairConfig()),
        "study-analyse": analysing(AnalyseConfig()),
    }


def _given(uri: PipelineChannel) -> PipelineChannel:
    """Plain `Artifact`: the local importer knows no other types, and any input takes it."""
    return dsl.importer(artifact_uri=uri, artifact_class=dsl.Artifact, reimport=False).output


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m pipelines.study FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, dag in every().items():
        write_ir(dag, folder / f"{name}.yaml")
        print(f"wrote {folder / name}.yaml")
