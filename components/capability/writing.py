"""Benchmarks of written answers: the last number counts, or the program must pass its tests.

Programs run in a sandboxed child process, never here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from components.capability import sandbox
from components.capability.benchmarks import Problem, Sum
from components.capability.config import SandboxConfig
from components.examinee import Examinee, Wish

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")

_END_OF_SUM = ("Question:",)
_END_OF_FUNCTION = ("\nclass ", "\ndef ", "\n#", "\nif ", "\nprint(", "\n@", "\nassert ")


@dataclass(frozen=True)
class Written:
    """What a checkpoint wrote for one question, and what became of it."""

    id: str
    text: str
    outcome: str
    is_right: bool
    n_dropped: int
    """Tokens of the question that the network had no room for."""


def solve_sums(examinee: Examinee, asked: Sequence[Sum], n_new: int) -> list[Written]:
    """Write each answer greedily and take its last number."""
    wishes = [Wish(one.context, _END_OF_SUM, n_new) for one in asked]
    return [
        Written(
            one.id, found.text, number(found.text), number(found.text) == number(one.right),
            found.n_dropped,
        )
        for one, found in zip(asked, examinee.continued(wishes), strict=True)
    ]  # fmt: skip


def write_programs(
    examinee: Examinee, asked: Sequence[Problem], n_new: int, limits: SandboxConfig
) -> list[Written]:
    """Write each function greedily and run its tests. SandboxError where nothing may be run."""
    wishes = [Wish(one.context, _END_OF_FUNCTION, n_new) for one in asked]
    found = []
    for one, written in zip(asked, examinee.continued(wishes), strict=True):
        outcome = sandbox.run(one.program(written.text), limits)
        found.append(Written(one.id, written.text, outcome, outcome == "passed", written.n_dropped))
    return found


def number(text: str) -> str:
    """The number that a text ends on, as one writes it: no thousands' commas, no zeros behind the
    point. What follows `####` comes first, as GSM8K marks it; empty where there is none."""
    marked = text.rpartition("####")
    found = NUMBER.findall(marked[2]) if marked[1] else NUMBER.findall(text)
    if not found:
        return ""
    plain = (found[0] if marked[1] else found[-1]).replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
