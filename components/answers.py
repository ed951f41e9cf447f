"""What language models have answered, kept on disk: no prompt is ever paid for twice.

An answer lies under the digest of everything that makes it: model, prompt, schema, sampling. It is
put in place by rename, so that a killed run leaves whole answers only. Processes that want the same
answer at the same time wait for one another: one asks, the others read.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """One completion. `text` is whatever came: prose, JSON, half of it, nothing.

    Tokens are zero where the endpoint does not count them.
    """

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
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def put(self, request: dict[str, object], answer: Answer) -> None:
        """Keep an answer, beside its request for whoever looks."""
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.partial")
        partial.write_text(json.dumps({"request": request, "answer": asdict(answer)}, indent=1))
        partial.replace(path)

    @contextmanager
    def claimed(self, request: dict[str, object]) -> Iterator[None]:
        """Hold this request, against threads and processes alike; the kernel frees it at a kill.

        Locks are a few thousand files that stay, each for the digests that begin alike: a lock
        that is removed while others wait for it would let two in.
        """
        path = self._folder / "claims" / digest_of(request)[:3]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _path(self, request: dict[str, object]) -> Path:
        digest = digest_of(request)
        return self._folder / digest[:2] / f"{digest}.json"


def digest_of(request: dict[str, object]) -> str:
    """SHA-256 of a request, whatever the order of its keys."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
