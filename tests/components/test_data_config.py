"""Mixtures that cannot be are refused when they are written, before any rank starts."""

import re

import pytest
from pydantic import ValidationError

from components.data_config import DataConfig, PackedSource, StreamedSource


def mixture(**changes):
    sources = {"own": PackedSource(), "tales": StreamedSource(path="tales")}
    weights = {"own": 2.0, "tales": 3.0}
    return DataConfig(**{"sources": sources, "weights": weights, "lanes": 6, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": {"own": 1.0}}, "sources are ['own', 'tales'], but weights are given for"),
        ({"weights": {"own": 1.0, "tales": 1e-5}}, "weights {'tales': 1e-05} are less than half"),
        ({"sources": {"own": {"kind": "packed", "location": "x"}}}, "digest ''; give the `digest`"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused_when_it_is_written(changes, said):
    with pytest.raises(ValidationError, match=re.escape(said)):
        mixture(**changes)


@pytest.mark.parametrize(("ranks", "batch_sequences"), [(4, 12), (6, 15)])
def test_lanes_that_ranks_or_batches_cannot_share_are_refused(ranks, batch_sequences):
    with pytest.raises(ValueError, match=rf"6 lanes cannot .* {ranks} ranks.*try lanes={ranks}"):
        mixture().refuse_uneven(batch_sequences=batch_sequences, ranks=ranks)
    mixture().refuse_uneven(batch_sequences=12, ranks=3)
    DataConfig().refuse_uneven(batch_sequences=7, ranks=7)


def test_what_changes_no_batch_is_how_and_all_else_is_what():
    assert set(DataConfig.model_fields) - set(DataConfig.HOW) == {"sources", "weights", "lanes"}
