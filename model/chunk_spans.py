"""Chunks of a generated text: what explanations are given for (paper §6.1.2, §6.1.3). No torch."""

from collections.abc import Sequence


def chunk_spans(token_ids: Sequence[int], end_of_chunk_id: int) -> list[slice]:
    """Chunks of a text: each ends with its end-of-chunk token, the last may be open."""
    found, start = [], 0
    for at, token_id in enumerate(token_ids):
        if token_id == end_of_chunk_id:
            found.append(slice(start, at + 1))
            start = at + 1
    if start < len(token_ids):
        found.append(slice(start, len(token_ids)))
    return found
