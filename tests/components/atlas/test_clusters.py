"""Tags as arrays, their groups, and the curve of coherence."""

import numpy as np
import pyarrow as pa
import pytest

from components import contracts
from components.atlas.clusters import NONE, knee, measure, sweep
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.atlas.tagged import places
from tests.components.atlas.some_tags import tagged

SEA = {4: ["sail", "wave"], 7: ["wave"], 9: ["wave", "whale", "wave"]}


def config(**changes: object) -> CanonicaliseConfig:
    naming = NamingConfig(namer="medoid")
    return CanonicaliseConfig(encoder="hashing", sweep=(2,), naming=naming).model_copy(
        update=changes
    )


def test_places_by_hand():
    found = tagged(SEA)
    assert list(found.texts) == ["sail", "wave", "whale"]
    assert found.weight_N.tolist() == [1, 3, 1]
    assert found.chunk_M[found.offset_N[1] : found.offset_N[2]].tolist() == [0, 1, 2]
    assert found.n_chunks == 3


def test_a_tag_has_the_kind_of_most_of_its_places():
    said = [("sea", "tone"), ("sea", "content"), ("sea", "tone"), ("fog", "tone"),
            ("fog", "document")]  # fmt: skip
    rows = [{"chunk_id": chunk, "tag": tag, "kind": kind} for chunk, (tag, kind) in enumerate(said)]
    found = places(pa.Table.from_pylist(rows, schema=contracts.TAGS.schema))
    assert found.texts == ["fog", "sea"]
    assert found.kind_N.tolist() == [1, 3]  # fog is undecided: document comes before tone


def test_a_group_counts_a_chunk_once_and_its_commonest_tag_first():
    groups = measure(tagged(SEA), np.array([0, 0, 1]))
    assert groups.n_chunks_K.tolist() == [3, 1]
    assert groups.weight_K.tolist() == [4, 1]
    assert groups.members(0).tolist() == [1, 0]


def test_groups_are_numbered_anew_without_those_in_none():
    groups = measure(tagged(SEA), np.array([5, NONE, 3]))
    assert groups.group_N.tolist() == [1, NONE, 0]
    assert [groups.members(at).tolist() for at in range(groups.n)] == [[2], [0]]


def test_coherence_by_hand():
    found = places(pa.Table.from_pylist(
        [{"chunk_id": 1, "tag": "a", "kind": "content"},
         {"chunk_id": 2, "tag": "b", "kind": "content"}], schema=contracts.TAGS.schema,
    )).tagged(np.eye(2, dtype=np.float32))  # fmt: skip
    assert measure(found, np.array([0, 0])).coherence_K[0] == pytest.approx(2**-0.5)
    assert measure(found, np.array([0, 1])).coherence_K.tolist() == pytest.approx([1.0, 1.0])


def test_the_knee_stands_highest_over_the_chord():
    assert knee({10: 0.3, 20: 0.6, 30: 0.65, 40: 0.68}) == 20
    assert knee({10: 0.3, 20: 0.6}) == 20


def test_the_curve_of_many_tags_is_taken_on_a_sample_with_k_in_proportion():
    many = tagged({chunk: [f"tag {chunk}", f"tag {chunk + 1}"] for chunk in range(40)})
    found = sweep(many, config(sweep=(4, 10, 20), sweep_tags=20))
    assert (found.n_tags, list(found.curve)) == (20, [4, 10, 20])
    assert found.groups.n == knee(found.curve)
    assert len(found.groups.group_N) == 41
    whole = sweep(many, config(sweep=(4, 10, 20), sweep_tags=41))
    assert whole.n_tags == 41
    assert whole.curve[20] == pytest.approx(found.curve[20], abs=0.1)
