"""Transfers that fail: what is tried again, how it waits, and what to tell a person.

A busy service (429, 5xx), a broken connection and a body that ended early are tried again; wrong
keys, a missing object and one that was replaced are not.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from components.storage import StorageConfig

Found = TypeVar("Found")


class StorageError(RuntimeError):
    """A store does not give what was asked for; the message has the way out."""


class InterruptedTransferError(StorageError):
    """A store did not answer in full this time; another try may help."""


def tried(
    once: Callable[[], Found], config: StorageConfig, sleep: Callable[[float], None] = time.sleep
) -> Found:
    """Do it again while it is interrupted, with growing waits. Raises StorageError in the end."""
    wait = config.first_wait_seconds
    for attempt in range(1, config.attempts + 1):
        try:
            return once()
        except InterruptedTransferError as error:
            if attempt == config.attempts:
                raise StorageError(
                    f"{error}; given up after {attempt} tries. Is the store overloaded? Resume "
                    f"later, or raise `attempts` of the storage settings."
                ) from error
            # Jitter: ranks that failed together must not come back together.
            sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, config.longest_wait_seconds)
    raise AssertionError("unreachable: the last attempt returns or raises")


def advice(status: int) -> str:
    """What to do about a refusal, by its HTTP status."""
    if status in (401, 403):
        return (
            "The keys are wrong, expired, or may not read this; set them anew in the environment."
        )
    if status == 404:
        return "There is no such object: is the location right, and was the artifact committed?"
    if status in (412, 416):
        return "The object was replaced since it was opened; open the artifact again."
    return "The request itself was refused; see the service's message."
