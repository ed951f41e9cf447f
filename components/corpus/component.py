"""The KFP face of the corpus stage."""

from kfp import dsl
from kfp.dsl import Output

from components import images
from components.artifacts import Documents


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def ingest(documents: Output[Documents], config: str, settings: str) -> None:
    """Read the sources of the corpus into documents."""
    from components.corpus.config import CorpusConfig
    from components.corpus.stage import ingest
    from components.runner import run_stage

    run_stage(ingest, {}, [], documents, CorpusConfig.model_validate_json(config), settings)
