"""Our checkpoints as a model of the harness: its three methods, on an examinee.

The released adaptor averaged batches of unequal size equally, had no seed, never said that a
continuation was greedy, and cut nothing (method §12.2 item 14). Here each request has its own
masks by seed, its standard error is kept, and greedy means what generation writes.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from pydantic import ValidationError

from components.examinee import Continued, Examinee, Question, Wish
from components.harness.config import Generation

_LENGTH_NAMES = ("max_new_tokens", "max_tokens", "max_completion_tokens")
"""Other names of `max_gen_toks` that tasks use."""


@dataclass(frozen=True)
class Answer:
    """What one request of a task got, with what the harness has no place for."""

    task: str
    doc_id: int
    index: int
    """Number of the request within its document."""

    kind: str
    figures: dict[str, object]

    def row(self) -> dict[str, object]:
        """As one line of `requests.jsonl`."""
        return {
            "task": self.task, "doc_id": self.doc_id, "index": self.index, "kind": self.kind,
            **self.figures,
        }  # fmt: skip


class HarnessLM(LM):
    """The harness asks; an examinee answers."""

    def __init__(self, examinee: Examinee) -> None:
        super().__init__()
        self._examinee = examinee
        self.answers: list[Answer] = []
        """Everything that was asked so far."""

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Log-probability in nats of each continuation, and whether temperature 0 writes it."""
        questions = [Question(*request.args) for request in requests]
        judged = self._examinee.likelihoods(questions)
        greedy = self._examinee.greedy(questions)
        for request, one, is_greedy in zip(requests, judged, greedy, strict=True):
            self._keep(request, {**asdict(one), "is_greedy": is_greedy})
        return [(one.nats, is_greedy) for one, is_greedy in zip(judged, greedy, strict=True)]

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Log-probability in nats of each whole text."""
        judged = self._examinee.likelihoods([Question("", *request.args) for request in requests])
        for request, one in zip(requests, judged, strict=True):
            self._keep(request, asdict(one))
        return [one.nats for one in judged]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """What each text goes on with, up to its stop string."""
        repeats: Counter[tuple[object, ...]] = Counter()
        wishes = []
        for request in requests:
            context, settings = request.args
            whose = (request.task_name, request.doc_id, request.idx)
            wishes.append(_wish(context, settings, repeats[whose]))
            repeats[whose] += 1
        continued = self._examinee.continued(wishes)
        for request, one in zip(requests, continued, strict=True):
            self._keep(request, _without_text(one))
        return [one.text for one in continued]

    def _keep(self, request: Instance, figures: dict[str, object]) -> None:
        self.answers.append(
            Answer(
                str(request.task_name), int(request.doc_id or 0), request.idx,
                request.request_type, figures,
            )
        )  # fmt: skip


def _wish(context: str, settings: Mapping[str, Any], draw: int) -> Wish:
    given = dict(settings)
    for name in _LENGTH_NAMES:
        if name in given:
            given.setdefault("max_gen_toks", given.pop(name))
    if isinstance(given.get("until"), str):
        given["until"] = [given["until"]]
    try:
        asked = Generation.model_validate(given)
    except ValidationError as error:
        raise ValueError(
            f"a task asks for generation_kwargs {dict(settings)}, which we cannot follow "
            f"({error.errors()[0]['msg']}); they may say {', '.join(Generation.model_fields)}"
        ) from error
    return Wish(
        context=context,
        until=asked.until,
        n_new=asked.max_gen_toks,
        temperature=asked.temperature if asked.do_sample else 0.0,
        top_p=asked.top_p,
        draw=draw,
    )


def _without_text(one: Continued) -> dict[str, object]:
    return {name: value for name, value in asdict(one).items() if name != "text"}
