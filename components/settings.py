"""Where a run happens and whose it is: the one thing a stage's key never depends on."""

from pathlib import Path

from model.config import Config


class Settings(Config):
    """Travels as JSON text beside each config. Nothing here may change what a stage computes."""

    run_id: str
    """Name of the pipeline run; its record lies in `runs/<run_id>`."""

    recipe: str
    pipeline: str
    runs: str
    """Absolute folder that holds the store and the record of every run."""

    cache: str
    """Absolute folder of fetched packages and of language-model answers."""

    tracking_uri: str
    experiment: str
    commit: str
    """Git commit of the code, with `+dirty` where the tree had changes."""

    force: tuple[str, ...] = ()
    """Tasks that run again although their artifact could be reused."""

    origin: str = ""
    """Run this one was started from (`rerun`), empty for a first run."""

    resume_command: str
    """What a person types to go on after a failure: finished stages are reused."""

    @property
    def run_folder(self) -> Path:
        """Record, logs and progress of this run."""
        return Path(self.runs) / self.run_id

    @property
    def store_root(self) -> Path:
        """Root of the artifact store."""
        return Path(self.runs) / "store"
