"""How a command ends: 0 done, 1 the answer is no, 2 what was asked for is wrong, 130 stopped."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import typer
from pydantic import ValidationError

from components import fetch

NO, BAD_INPUT, INTERRUPTED = 1, 2, 130

_SHOWN_CHARS = 80
"""Of a value that is refused."""

Result = TypeVar("Result")


def guarded(action: Callable[[], Result]) -> Result:
    """Run `action`; what a person can get wrong ends as its message, not as a traceback."""
    try:
        return action()
    except (ValueError, fetch.FetchError) as error:
        stop(str(error), BAD_INPUT)


def stop(message: str, code: int) -> NoReturn:
    """End the command with a message on the error stream."""
    print(message, file=sys.stderr)
    raise typer.Exit(code)


def checked(action: Callable[[], Result]) -> Result:
    """`guarded`, with what a schema refuses said in one line."""

    def said() -> Result:
        try:
            return action()
        except ValidationError as error:
            raise ValueError("; ".join(_refusal(one) for one in error.errors())) from error

    return guarded(said)


def _refusal(error: Mapping[str, Any]) -> str:
    said = str(error["msg"]).removeprefix("Value error, ")
    where = ".".join(map(str, error["loc"]))
    given = repr(error["input"])
    shown = given if len(given) <= _SHOWN_CHARS else f"{given[:_SHOWN_CHARS]}…"
    return said if error["type"] == "value_error" else f"{where} is {shown}: {said}"
