"""What language models have answered, kept on disk: no prompt is ever paid for twice.

An answer lies under the digest of everything that makes it: model, prompt, schema, sampling. It is
put in place by rename, so that a killed run leaves whole answers only.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """One completion. `text` is whatever came: prose, JSON, half of it, nothing."""

    text: str
    n_prompt_tokens: int
    n_completion_tokens: int


class Answers:
    """A folder of answers by the digest of their request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, request: dict[str, object]) -> Answer | None:
        """The answer to this very request, or None. A damaged file counts as none."""
        try:
            return Answer(**json.loads(self._path(request).read_text())["answer"])
        except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
            return None

    def put(self, request: dict[str, object], answer: Answer) -> None:
        """Keep an answer, beside its request for whoever looks."""
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps({"request": request, "answer": asdict(answer)}, indent=1))
        partial.replace(path)

    def _path(self, request: dict[str, object]) -> Path:
        text = json.dumps(request, sort_keys=True, ensure_ascii=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.json"
