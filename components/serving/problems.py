"""What the server answers when it does not do what was asked: one shape for every refusal."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import Response

from model.config import Config

REFUSED = "clearstory.refused"
"""Key of a request's scope: the problem it got, for the metrics."""


class Problem(Config):
    """Body of every answer that is not 2xx."""

    error: str
    """A word for programs: `queue_full`, `unknown_concept`, …"""

    message: str
    """A sentence for people: the value, the limit, the way out."""

    field: str = ""
    """Where in the request, if it is one place: `wishes.0.concept`."""

    candidates: tuple[str, ...] = ()
    """Names that may have been meant."""


INTERNAL = Problem(
    error="internal",
    message="the server failed at this request; its log says why. Other requests go on",
)
"""A fault of ours: its traceback is for the log, not for the client."""


class RefusedError(Exception):
    """A request that gets a problem instead of an answer."""

    def __init__(
        self, status: int, problem: Problem, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(problem.message)
        self.status, self.problem, self.headers = status, problem, headers

    def response(self) -> Response:
        """The refusal as it is sent."""
        return as_response(self.status, self.problem, self.headers)


def as_response(
    status: int, problem: Problem, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """A problem as JSON."""
    return Response(
        as_json(problem.model_dump()), status, dict(headers), media_type="application/json"
    )


def as_json(value: object) -> bytes:
    """JSON in UTF-8; half of a surrogate pair, which UTF-8 cannot hold, stays an escape."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
