"""The KFP faces of the corpus stages."""

from kfp import dsl
from kfp.dsl import Output

from components import images
from components.artifacts import Documents, Messages


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def ingest(documents: Output[Documents], config: str, settings: str) -> None:
    """Read the sources of the corpus into documents."""
    from components.corpus.config import CorpusConfig
    from components.corpus.stage import ingest
    from components.runner import run_stage

    run_stage(ingest, {}, [], documents, CorpusConfig.model_validate_json(config), settings)


@dsl.component(base_image=images.CPU, install_kfp_package=False)
def converse(messages: Output[Messages], config: str, settings: str) -> None:
    """Read the sources of conversations into messages."""
    from components.corpus.config import ConverseConfig
    from components.corpus.conversations import converse
    from components.runner import run_stage

    run_stage(converse, {}, [], messages, ConverseConfig.model_validate_json(config), settings)
