"""Indexes in shards: the same bytes whoever works, rows added, files that are broken."""

from pathlib import Path

import numpy as np
import pytest

from components import nearest, nearest_lists, nearest_rows, nearest_shards
from components.nearest_config import LayoutConfig, layout
from components.nearest_shards import Vectors

WIDTH = 12
PLAIN = LayoutConfig(exact_up_to=20, uncompressed_up_to=700, rows_per_shard=290, recall_queries=9)
CODES = PLAIN.model_copy(
    update={
        "exact_up_to": 19, "uncompressed_up_to": 20, "compression": 8, "rotations": 1,
        "n_candidates": 120, "graph_from_lists": 5, "train_rows_per_list": 39,
    }
)  # fmt: skip


def some_vectors(n: int, seed: int = 0) -> Vectors:
    stored_ND = np.random.default_rng(seed).normal(size=(n + 3, WIDTH)).astype(np.float16)
    return Vectors(stored_ND, np.arange(n)[::-1] + 2)


def built(vectors: Vectors, folder: Path, config: LayoutConfig, n_workers: int = 1) -> Path:
    folder.mkdir()
    queries_QD = some_vectors(9, seed=5).rows(0, 9)
    nearest_shards.build(vectors, queries_QD, folder, folder / "shards", config, n_workers)
    return folder


def opened(folder: Path) -> nearest.VectorIndex:
    return nearest_lists.open_index(folder, "", CODES.n_candidates)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(some_vectors(650), tmp_path_factory.mktemp("codes") / "one", CODES)


@pytest.mark.parametrize(
    ("n", "width", "kind"),
    [
        (20_000, 384, "Flat"),
        (20_001, 384, "IVF512,Flat"),
        (1_000_000, 384, "OPQ24_192,IVF4096,PQ24np"),
        (9_000_000, 1024, "OPQ64_512,IVF65536_HNSW32,PQ64np"),
        (11_000_000_000, 1024, "OPQ64_512,IVF4194304_HNSW32,PQ64np"),
    ],
)
def test_the_layout_goes_by_the_number_of_vectors(n: int, width: int, kind: str) -> None:
    assert layout(n, width, LayoutConfig()) == kind


def test_nothing_has_no_layout() -> None:
    with pytest.raises(ValueError, match="0 vectors of width 7 cannot be indexed"):
        layout(0, 7, LayoutConfig())


def test_any_number_of_workers_leaves_the_same_bytes(codes: Path, tmp_path: Path) -> None:
    again = built(some_vectors(650), tmp_path / "again", CODES, n_workers=3)
    assert files(again) == files(codes)
    assert set(files(codes)) == {"index.faiss", "lists.bin", "lists.npy", "rows.npy"}


def test_a_finished_shard_is_not_encoded_again(codes: Path, tmp_path: Path) -> None:
    shards, vectors = tmp_path / "shards", some_vectors(650)
    shards.mkdir()
    (shards / "trained.faiss").write_bytes((codes / "shards/trained.faiss").read_bytes())
    first = nearest_shards.shard(vectors, 1, shards, CODES)
    assert first.read_bytes() == (codes / "shards/00001.faiss").read_bytes()
    first.write_bytes(b"kept as it is")
    assert nearest_shards.shard(vectors, 1, shards, CODES).read_bytes() == b"kept as it is"


def test_whole_rows_put_in_order_what_codes_propose(codes: Path) -> None:
    vectors, queries_QD = some_vectors(650), some_vectors(9, seed=5).rows(0, 9)
    true = nearest_shards.exact_neighbours(vectors, queries_QD, 10)
    index = opened(codes)
    found = index.search(queries_QD, 10)
    assert nearest.recall(found, true.rows_QK) >= CODES.least_recall
    assert found.rows_QK[:, 0].tolist() == true.rows_QK[:, 0].tolist()
    np.testing.assert_allclose(found.cosine_QK[:, 0], true.cosine_QK[:, 0], atol=1e-3)
    by_codes = nearest.VectorIndex(index.table, index.kind).search(queries_QD, 10)
    assert nearest.recall(by_codes, true.rows_QK) < 0.97


def test_an_index_works_where_it_is_moved_to(codes: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for name, content in files(codes).items():
        (moved / name).write_bytes(content)
    query_QD = some_vectors(1, seed=6).rows(0, 1)
    assert opened(moved).search(query_QD, 3).rows_QK.tolist() == (
        opened(codes).search(query_QD, 3).rows_QK.tolist()
    )


@pytest.mark.parametrize("config", [PLAIN, CODES], ids=["lists", "codes"])
def test_added_rows_are_found_after_those_that_were_there(
    tmp_path: Path, config: LayoutConfig
) -> None:
    more, kind = some_vectors(333, seed=8), layout(650, WIDTH, config)
    old = built(some_vectors(650), tmp_path / "old", config)
    (tmp_path / "new").mkdir()
    index = nearest_shards.add(old, more, tmp_path / "new", tmp_path / "shards", kind, config)
    assert index.n == 983
    found = index.search(more.rows(100, 110), 1)
    assert found.rows_QK[:, 0].tolist() == list(range(750, 760))


def test_few_rows_are_compared_one_by_one_and_more_can_be_added(tmp_path: Path) -> None:
    old = built(some_vectors(17), tmp_path / "old", PLAIN)
    (tmp_path / "new").mkdir()
    more = some_vectors(5, seed=2)
    index = nearest_shards.add(old, more, tmp_path / "new", tmp_path / "shards", "Flat", PLAIN)
    assert (index.n, index.search(more.rows(4, 5), 1).rows_QK.tolist()) == (22, [[21]])
    assert set(files(tmp_path / "new")) == {"index.faiss"}


def test_eight_bit_rows_keep_their_directions() -> None:
    vectors_ND = some_vectors(40).rows(0, 40)
    rows = nearest_rows.RefineRows(nearest_rows.encoded(vectors_ND, "int8"), n_candidates=40)
    cosine_QK, rows_QK = rows.best(vectors_ND[:2], np.tile(np.arange(40), (2, 1)), 2)
    assert rows_QK[:, 0].tolist() == [0, 1]
    np.testing.assert_allclose(cosine_QK[:, 0], 1.0, atol=1e-4)


def test_rows_of_another_index_and_a_cut_file_are_refused(codes: Path, tmp_path: Path) -> None:
    for name, content in files(codes).items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "rows.npy", np.zeros((4, WIDTH), dtype=np.float16))
    with pytest.raises(
        nearest.CorruptIndexError, match="has 4 rows but the lists beside it have 650"
    ):
        opened(tmp_path)
    (tmp_path / "lists.bin").write_bytes(b"cut short")
    with pytest.raises(nearest.CorruptIndexError, match=r"has 9 bytes, but 650 rows in 16 lists"):
        opened(tmp_path)
    (tmp_path / "index.faiss").write_bytes(b"IxPT no more")
    with pytest.raises(nearest.CorruptIndexError, match=r"\(12 bytes\) cannot be read"):
        opened(tmp_path)
