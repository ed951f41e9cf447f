"""The artifacts of a finished run, by contract: what notebooks and people open.

Everything is verified before it is handed out:

    run = RunFolder(Path("runs/demo-20260101-120000-ab12"))
    run.table(contracts.DOCUMENTS)          as Arrow
    run.artifact(contracts.CHECKPOINT)      its folder, of the last task that wrote one
"""

from pathlib import Path

import pyarrow as pa

from components import contracts, records
from components.contracts import Contract


class RunFolder:
    """One run's record, opened for reading."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "stages").is_dir():
            raise FileNotFoundError(
                f"{folder} is not a run: it has no stages. `clearstory run` prints the folder of "
                f"the run it made; give that one."
            )
        self.folder = folder
        self._stages = records.read_stages(folder)

    def artifact(self, contract: Contract, task: str = "") -> Path:
        """The verified folder of the last such artifact, or of the one that `task` wrote."""
        found = [
            Path(manifest.location)
            for stage in self._stages
            for manifest in stage.outputs.values()
            if manifest.contract == contract.name and task in ("", stage.task)
        ]
        if not found:
            raise FileNotFoundError(
                f"{self.folder} has no {contract}{f' of {task}' if task else ''}; it has "
                f"{self.contents()}"
            )
        contracts.verify(found[-1], contract)
        return found[-1]

    def has(self, contract: Contract) -> bool:
        """Whether any task wrote such an artifact."""
        return any(
            manifest.contract == contract.name
            for stage in self._stages
            for manifest in stage.outputs.values()
        )

    def table(self, contract: Contract, task: str = "") -> pa.Table:
        """The rows of an artifact."""
        return contracts.read(self.artifact(contract, task), contract)

    def contents(self) -> list[str]:
        """Contract and task of everything the run wrote."""
        return [
            f"{manifest.contract} of {stage.task}"
            for stage in self._stages
            for manifest in stage.outputs.values()
        ]
