"""When the next request may go out: limits of an endpoint, shared by all its lanes.

Requests are spaced, so that no minute holds more than its limit, and each books its tokens ahead;
what it did not use is given back. An endpoint that asks for a pause is left alone by every lane.
"""

import email.utils
import threading
import time
from collections.abc import Callable

_MINUTE_SECONDS = 60.0


class Pace:
    """Books departures. Limits are for one process; None: no limit."""

    def __init__(
        self,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_request = _MINUTE_SECONDS / requests_per_minute if requests_per_minute else 0.0
        self._per_token = _MINUTE_SECONDS / tokens_per_minute if tokens_per_minute else 0.0
        self._now = now
        self._lock = threading.Lock()
        self._requests_free = self._tokens_free = self._paused_until = float("-inf")

    def book(self, n_tokens: int) -> float:
        """Seconds to wait before a request of about so many tokens may go out."""
        with self._lock:
            now = self._now()
            start = max(now, self._requests_free, self._tokens_free, self._paused_until)
            self._requests_free = start + self._per_request
            self._tokens_free = start + n_tokens * self._per_token
            return start - now

    def give_back(self, n_tokens: int) -> None:
        """Tokens that were booked and not used; negative: used beyond what was booked."""
        with self._lock:
            self._tokens_free -= n_tokens * self._per_token

    def pause(self, seconds: float) -> None:
        """Nothing goes out for so long."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._now() + seconds)


def seconds_of(retry_after: str) -> float | None:
    """What a Retry-After header asks for, a number or a date; None where it says neither."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None
