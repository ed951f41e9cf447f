"""How an optimisation may end before its last step. No torch here.

The exit code is what the command ends with (the table is in `components.launch`).
"""

from typing import ClassVar


class EndedError(RuntimeError):
    """An end that was meant: the message is for a person, a traceback would say nothing more."""

    exit_code: ClassVar[int]


class StoppedError(EndedError):
    """Somebody asked the run to stop (SIGTERM); it can go on from its last savepoint."""

    exit_code = 75


class DivergedError(EndedError):
    """Too many steps in a row whose loss or gradient was not finite."""

    exit_code = 76
