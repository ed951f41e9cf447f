"""A packed source dealt to lanes: together they go through it as one reader would."""

from collections import Counter

import numpy as np
import pytest

from components.dealt import Dealt
from components.loader import Source
from components.tokens import TokenStream
from tests.components import fed_job

LENGTH, LANES = 16, 3


@pytest.fixture(scope="module")
def dealt(tmp_path_factory):
    stream = TokenStream(fed_job.write_tokens(tmp_path_factory.mktemp("stream")))
    return Dealt(Source("own", stream), LENGTH, LANES, seed=2)


def test_lanes_together_read_every_window_once_an_epoch(dealt):
    stream = dealt.source.stream
    n_windows = stream.n_windows("train", LENGTH)
    places = np.arange(2 * n_windows)
    batch = dealt.batch(places % LANES, places // LANES, places)
    drawn = [tuple(ids) for ids in batch.ids_BT.tolist()]
    every = stream.batch("train", LENGTH, np.arange(n_windows)).ids_BT.tolist()
    assert Counter(drawn[:n_windows]) == Counter(drawn[n_windows:]) == Counter(map(tuple, every))
    assert drawn[:n_windows] != drawn[n_windows:]


def test_whole_epochs_give_all_tokens_of_the_source(dealt):
    n_windows = dealt.source.size(LENGTH)
    nothing = np.array([], dtype=np.int64)
    given = dealt.given(2 * n_windows, nothing, nothing)  # places of each of three lanes
    assert given.epochs == 2 * LANES
    assert given.n_tokens == 2 * LANES * dealt.source.stream.n_tokens("train")
