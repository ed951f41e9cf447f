"""Chunks of a generated text: what concepts and training text are told for (paper §6.1.2).

A chunk ends with its <|endofchunk|>, or where the text ends; the last may be open. The ending
belongs to the chunk, so that every token of a text lies in exactly one. An ending, or a stop
token, with no text before it belongs to the chunk before; with none before, it is a chunk itself.
"""

from collections.abc import Collection, Sequence

from model.trace import Trace


def chunks(trace: Trace, end_of_chunk_id: int) -> list[slice]:
    """Positions of each chunk of what was generated, in order; none lies behind the text's end."""
    ids = trace.generated
    endings = {end_of_chunk_id, ids[-1]} if trace.stopped else {end_of_chunk_id}
    first = trace.n_prompt
    return [slice(first + at.start, first + at.stop) for at in spans(ids, endings)]


def spans(ids: Sequence[int], endings: Collection[int]) -> list[slice]:
    """Slices of a text that together hold each of its tokens once."""
    found: list[slice] = []
    start = 0
    for at, token in enumerate(ids):
        last = at + 1 == len(ids)
        if token not in endings and not last:
            continue
        bare = at == start and token in endings
        if bare and found:
            found[-1] = slice(found[-1].start, at + 1)
        else:
            found.append(slice(start, at + 1))
        start = at + 1
    return found
