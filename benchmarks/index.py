"""A million real sentences in an index of codes: bytes, seconds, recall, and what 11e9 would need.

    python -m benchmarks.sentences FOLDER          once: Debian packages that hold text
    clearstory distil --out ENCODER                once: a static encoder, from a run's vectors
    python -m benchmarks.index FOLDER ENCODER

Vectors have the encoder's own width. Rows that codes propose are put in order by whole rows beside
them; with rows of 8 bits, of 16, and without any. Lists probed were chosen on other queries than
the recall is told of. All on one thread; six minutes of the processor.

Shape suffixes: N sentences   Q queries   D vector width   K neighbours
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.sentences import sentences
from components import nearest_lists, nearest_rows, nearest_shards
from components.nearest import Floats, Integers, VectorIndex
from components.nearest_config import LayoutConfig, layout
from components.nearest_shards import Vectors
from components.static_encoder import StaticEncoder
from model import intervals

SIZES = (100_000, 1_000_000)
N_TUNED, N_ASKED = 200, 1_000
CONFIG = LayoutConfig(uncompressed_up_to=50_000, recall_queries=N_TUNED, least_recall=0.975)
PAPER_N, PAPER_WIDTH, PAPER_BYTES = 11e9, 1_024, 808e9
_NUMBER_BYTES = 8


@dataclass(frozen=True)
class Built:
    """An index of some size, and what it cost."""

    n: int
    width: int
    index: VectorIndex
    train_seconds: float
    add_seconds: float
    lists_bytes: int
    """Codes and numbers of the rows."""

    table_bytes: int
    """With centroids, rotation and codebooks."""

    refine_bytes: int
    peak_mib: float
    """Resident while it was built, the pages of mapped vectors included."""

    def __str__(self) -> str:
        per_row = self.table_bytes / self.n
        return (
            f"{self.n:,} sentences × {self.width}  {self.index.kind}, "
            f"{nearest_lists.n_probed(self.index)} lists probed: train {self.train_seconds:.0f} s, "
            f"add {self.add_seconds:.0f} s ({1e6 * self.add_seconds / self.n:.0f} µs each); codes, "
            f"numbers, lists and centroids {self.table_bytes / 2**20:.0f} MiB ({per_row:.1f} bytes "
            f"each, {4 * self.width * self.n / self.table_bytes:.0f}× smaller), rows in float16 "
            f"{self.refine_bytes / 2**20:.0f} MiB; peak {self.peak_mib:.0f} MiB"
        )


def lines(folder: Path, encoder: Path, work: Path) -> Iterator[str]:
    """What is measured, a line each."""
    stored_ND = _embedded(folder, StaticEncoder(encoder), work / "vectors.npy")
    n_most = max(SIZES)
    tuned_on, asked = stored_ND[n_most : n_most + N_TUNED], stored_ND[n_most + N_TUNED :]
    found = []
    for n in SIZES:
        vectors = Vectors(stored_ND, np.arange(n))
        built = _built(vectors, tuned_on, work / str(n))
        found.append(built)
        yield str(built)
        true_QK = nearest_shards.exact_neighbours(vectors, asked, 100).rows_QK
        for name, index in _variants(built.index, vectors):
            yield f"{n:,}, {name:<8} {_asked(index, asked, true_QK)}"
    yield extrapolation(*found)


def extrapolation(small: Built, large: Built) -> str:
    """Bytes and seconds of the paper's index, from how both grow between two sizes."""
    more = large.n - small.n
    wider = PAPER_WIDTH / large.width
    codes = (large.lists_bytes - small.lists_bytes) / more - _NUMBER_BYTES
    per_row = codes * wider + _NUMBER_BYTES
    centroids = 4_194_304 * (4 * PAPER_WIDTH + 2 * 32 * 4)
    total = PAPER_N * per_row + centroids
    added = (large.add_seconds - small.add_seconds) / more * wider
    return (
        f"from {small.n:,} to {large.n:,}: {codes:.2f} bytes of code and {_NUMBER_BYTES} of number "
        f"for each row more, {large.table_bytes / small.table_bytes:.2f} × the bytes and "
        f"{large.add_seconds / small.add_seconds:.2f} × the seconds for {large.n / small.n:.0f} × "
        f"the rows; so {PAPER_N / 1e9:.0f} billion × {PAPER_WIDTH} take {per_row:.1f} bytes each "
        f"and {centroids / 1e9:.0f} GB of 4,194,304 centroids with their graph, "
        f"{total / 1e9:.0f} GB (paper {PAPER_BYTES / 1e9:.0f} GB), "
        f"{PAPER_N * PAPER_WIDTH * 2 / 1e12:.1f} TB of rows in float16 beside "
        f"them, and {PAPER_N * added / 3600:,.0f} hours of one thread to add, if a "
        f"graph finds the list as fast as 4,096 comparisons do here"
    )


def _embedded(folder: Path, encoder: StaticEncoder, path: Path) -> Floats:
    """Vectors of distinct sentences in a seeded order, on disk."""
    n = max(SIZES) + N_TUNED + N_ASKED
    every = sentences(folder)
    if len(every) < n:
        raise ValueError(f"{folder} has {len(every):,} sentences, but {n:,} are needed; add text")
    order_N = np.random.default_rng(0).permutation(len(every))[:n]
    stored_ND = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(n, encoder.width)
    )
    for start in range(0, n, 20_000):
        rows = order_N[start : start + 20_000].tolist()
        stored_ND[start : start + len(rows)] = encoder.embed([every[row] for row in rows])
    return stored_ND


def _built(vectors: Vectors, tuned_on: Floats, folder: Path) -> Built:
    shards = folder / "shards"
    shards.mkdir(parents=True)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far (Linux)
    kind = layout(len(vectors), vectors.width, CONFIG)
    began = time.process_time()
    nearest_shards.train(vectors, kind, shards, CONFIG)
    trained = time.process_time()
    parts = [nearest_shards.shard(vectors, 0, shards, CONFIG)]
    nearest_shards.merge(parts, folder, kind, CONFIG)
    added = time.process_time()
    index = nearest_lists.open_index(folder, kind, CONFIG.n_candidates)
    index = nearest_shards.tuned(index, vectors, tuned_on, folder, CONFIG)
    sizes = {name: (folder / name).stat().st_size for name in nearest_lists.FILES}
    refine_bytes = sizes.pop(nearest_lists.ROWS_FILE)
    status = Path("/proc/self/status").read_text().splitlines()
    peak_mib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    return Built(
        len(vectors), vectors.width, index, trained - began, added - trained,
        sizes[nearest_lists.LISTS_FILE], sum(sizes.values()), refine_bytes, peak_mib,
    )  # fmt: skip


def _variants(index: VectorIndex, vectors: Vectors) -> Iterator[tuple[str, VectorIndex]]:
    yield "codes", replace(index, rows=None)
    stored_ND = np.concatenate(
        [
            nearest_rows.encoded(vectors.rows(start, start + 50_000), "int8")
            for start in range(0, len(vectors), 50_000)
        ]
    )
    yield "+ int8", replace(index, rows=nearest_rows.RefineRows(stored_ND, CONFIG.n_candidates))
    yield "+ float16", index


def _asked(index: VectorIndex, queries_QD: Floats, true_QK: Integers) -> str:
    wall, processor, found = [], [], []
    for query_D in queries_QD:
        began, began_processor = time.perf_counter(), time.process_time()
        found.append(index.search(query_D[None], 100).rows_QK[0])
        wall.append(1e3 * (time.perf_counter() - began))
        processor.append(1e3 * (time.process_time() - began_processor))
    told = []
    for k in (1, 10, 100):
        share_Q = np.array(
            [
                len(set(rows[:k]) & set(true[:k])) / k
                for rows, true in zip(found, true_QK, strict=True)
            ]
        )
        one = intervals.ratio_interval(share_Q, np.ones(len(share_Q)), draws=1_000, seed=0)
        told.append(f"@{k} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]")
    return (
        f"recall {'  '.join(told)}, n = {len(queries_QD):,}; a query {np.median(processor):.2f} ms "
        f"of the processor, {np.median(wall):.2f} ms p50 and {np.quantile(wall, 0.95):.2f} p95"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for line in lines(Path(sys.argv[1]), Path(sys.argv[2]), Path(scratch)):
            print(line, flush=True)
