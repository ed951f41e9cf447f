"""The bearer token: read where a reference points, compared in constant time."""

import hmac
import os
from pathlib import Path

_LEAST_CHARS = 16


def read(reference: str) -> bytes:
    """The token behind `file:PATH` or `env:NAME`; nothing where there is no reference.

    Raises ValueError if it is missing, short, or holds what no header can carry.
    """
    if not reference:
        return b""
    kind, _, where = reference.partition(":")
    if kind == "file":
        token = _of_file(Path(where))
    elif kind == "env":
        token = os.environ.get(where, "").strip()
    else:
        raise ValueError(
            "a token is given by where it stands, as file:PATH or env:NAME, and never itself"
        )
    if len(token) < _LEAST_CHARS or not (token.isascii() and token.isprintable()):
        raise ValueError(
            f"the token of {reference} has {len(token)} characters; it needs {_LEAST_CHARS} or "
            f"more, printable ASCII. Make one with: openssl rand -hex 32"
        )
    return token.encode()


def grants(token: bytes, header: str) -> bool:
    """Whether an Authorization header carries the token. Takes as long for any wrong one."""
    scheme, _, given = header.partition(" ")
    offered = given.strip().encode("utf-8", "surrogateescape")
    return hmac.compare_digest(token, offered) and scheme.lower() == "bearer"


def _of_file(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the token file {path} cannot be read ({error})") from error
