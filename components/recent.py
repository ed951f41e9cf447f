"""A place whose last reads are kept in memory, up to a bound: a second epoch asks S3 for little.

Training reads the same ranges in every epoch, so whole ranges are kept, and nothing around them.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from components.manifests import FileDigest
from components.ranged import Place, Range


class Recent:
    """As the place it stands before (`components.ranged.Place`), from several threads too."""

    def __init__(self, place: Place, max_bytes: int) -> None:
        self._place, self._max_bytes = place, max_bytes
        self._kept: OrderedDict[Range, bytes] = OrderedDict()
        self._lock = Lock()
        self.n_bytes_kept = 0

    def __str__(self) -> str:
        return str(self._place)

    def close(self) -> None:
        """See Place."""
        self._place.close()

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """See Place."""
        with self._lock:
            missing = [wanted for wanted in dict.fromkeys(ranges) if wanted not in self._kept]
            fetched = dict(zip(missing, self._place.read(missing), strict=True))
            found = [
                fetched[wanted] if wanted in fetched else self._touched(wanted) for wanted in ranges
            ]
            for wanted, content in fetched.items():
                self._keep(wanted, content)
            return found

    def local(self, name: str) -> Path:
        """See Place."""
        return self._place.local(name)

    def n_bytes(self, name: str) -> int:
        """See Place."""
        return self._place.n_bytes(name)

    def digest(self, name: str) -> FileDigest:
        """See Place."""
        return self._place.digest(name)

    def _touched(self, wanted: Range) -> bytes:
        self._kept.move_to_end(wanted)
        return self._kept[wanted]

    def _keep(self, wanted: Range, content: bytes) -> None:
        self._kept[wanted] = content
        self.n_bytes_kept += len(content)
        while self.n_bytes_kept > self._max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self.n_bytes_kept -= len(dropped)
