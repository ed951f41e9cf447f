"""Every generated token lies in exactly one chunk, whatever ends it."""

from itertools import pairwise

import pytest

from model.generated_chunks import chunks, spans
from model.sampling import generate
from model.sampling_config import SamplingConfig
from tests.model.explained import END_OF_CHUNK, loud_network, some_prompts

STOP = 1


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([7, 8, 9], [[7, 8, 9]]),
        ([7, END_OF_CHUNK, 8, 9], [[7, END_OF_CHUNK], [8, 9]]),
        ([7, END_OF_CHUNK, 8, END_OF_CHUNK], [[7, END_OF_CHUNK], [8, END_OF_CHUNK]]),
        ([7, END_OF_CHUNK, 8, STOP], [[7, END_OF_CHUNK], [8, STOP]]),
        ([7, END_OF_CHUNK, STOP], [[7, END_OF_CHUNK, STOP]]),
        ([7, END_OF_CHUNK, END_OF_CHUNK, 8], [[7, END_OF_CHUNK, END_OF_CHUNK], [8]]),
        ([END_OF_CHUNK, 8], [[END_OF_CHUNK], [8]]),
        ([STOP], [[STOP]]),
        ([], []),
    ],
)
def test_chunks_of_a_text_by_hand(ids: list[int], wanted: list[list[int]]) -> None:
    assert [ids[at] for at in spans(ids, {END_OF_CHUNK, STOP})] == wanted


def test_chunks_of_a_trace_end_with_its_text_not_with_what_was_committed() -> None:
    lm = loud_network()
    config = SamplingConfig(n_new=11)
    (free,) = generate(lm, some_prompts(1, 6), config)
    ending, stop = free.token_N[free.position_N.argsort()][[2, 7]].tolist()
    (trace,) = generate(lm, some_prompts(1, 6), config, stop_ids=[stop])
    found = chunks(trace, ending)
    assert (found[0].start, found[-1].stop) == (6, trace.end)
    assert all(one.stop == other.start for one, other in pairwise(found))
    assert [int(trace.ids_T[at.stop - 1]) for at in found[:-1]] == [ending] * (len(found) - 1)
