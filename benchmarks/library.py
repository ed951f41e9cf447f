"""Stage two of Atlas on many tags: seconds by step, peak memory, and what 14 million would take.

    python -m benchmarks.library TAGS [N ...]      TAGS: a folder of Tags@1, as `tag` writes it

Unique tags are made by joining real ones, and their vectors, which are given, from those of their
parts; 250 tags to a cluster, as the paper has 175; 10 places a tag on average, few tags on many.
Each size is measured in a process of its own. Names are given without a language model; encoding
the cards of concepts is part of naming and merging, and its rate is told apart.

Shape suffixes: N tags   D width of a vector
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from components import contracts, embedding
from components.atlas import taxonomy
from components.atlas.canonicalisation import library_of, rows_of
from components.atlas.clusters import sweep
from components.atlas.draft import CardVectors, History
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.atlas.tagged import places
from components.atlas.vocabulary import vocabulary
from components.embedding import Embedder, Floats
from components.library import freeze

ENCODER = "minilm-int8"
SIZES = (100_000, 300_000, 1_000_000)
TAGS_PER_CLUSTER, PLACES_PER_TAG, CHUNKS_PER_TAG = 250, 10, 3
ITERATIONS = 10
PAPER_TAGS, PAPER_CLUSTERS = 14_000_000, 80_000


class _Timed:
    """An encoder that remembers what it took."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self.name, self.digest = encoder.name, encoder.digest
        self.width, self.max_wordpieces = encoder.width, encoder.max_wordpieces
        self.n_texts, self.seconds = 0, 0.0

    def embed(self, texts: Sequence[str]) -> Floats:
        start = time.perf_counter()
        vectors_ND = self._encoder.embed(texts)
        self.seconds += time.perf_counter() - start
        self.n_texts += len(texts)
        return vectors_ND


def make(tags: Path, n: int, folder: Path) -> None:
    """Tags@1 rows and vectors of `n` unique tags that were never written, out of real ones."""
    real = pq.read_table(tags / contracts.ROWS_FILE)["tag"].unique().to_pylist()
    real_ND = embedding.load(ENCODER).embed(real)
    draw = np.random.default_rng(0)
    texts: dict[str, tuple[int, int]] = {}
    while len(texts) < n:
        for first, second in draw.integers(0, len(real), size=(n, 2)).tolist():
            texts.setdefault(f"{real[first]} {real[second]}"[:60].strip(), (first, second))
    chosen = sorted(texts)[:: max(1, len(texts) // n)][:n]
    parts = np.array([texts[text] for text in chosen])
    vectors_ND = np.lib.format.open_memmap(
        folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(n, real_ND.shape[1])
    )
    for start in range(0, n, 50_000):
        rows = slice(start, start + 50_000)
        mixed = real_ND[parts[rows, 0]] + 0.5 * real_ND[parts[rows, 1]]
        mixed += 0.3 * draw.standard_normal(mixed.shape, np.float32) / mixed.shape[1] ** 0.5
        vectors_ND[rows] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    vectors_ND.flush()
    counts_N = np.minimum(draw.zipf(2.0, n), 2_000)
    extra = max(0, PLACES_PER_TAG * n - int(counts_N.sum()))
    counts_N += np.bincount(draw.integers(0, n, extra), minlength=n)
    row_R = draw.permutation(np.repeat(np.arange(n), counts_N))
    table = pa.table({
        "chunk_id": draw.integers(0, CHUNKS_PER_TAG * n, len(row_R)),
        "tag": pa.DictionaryArray.from_arrays(row_R.astype(np.int32), chosen).cast(pa.string()),
        "kind": pa.array(["content"] * len(row_R)),
    })  # fmt: skip
    (folder / "sample.json").write_text("{}")
    contracts.write_batches([table], folder, contracts.TAGS)


def measure(made: Path) -> dict[str, object]:
    """Seconds of each step of stage two on made tags, in this process."""
    encoder, taken = _Timed(embedding.load(ENCODER)), dict[str, float]()

    @contextmanager
    def step(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        taken[name] = time.perf_counter() - start

    vectors_ND = np.load(made / "vectors.npy")
    naming = NamingConfig(namer="medoid", vocabulary="encyclopedia")
    k = len(vectors_ND) // TAGS_PER_CLUSTER
    config = CanonicaliseConfig(encoder=ENCODER, sweep=(k,), n_iterations=ITERATIONS, naming=naming)
    words = vocabulary("encyclopedia", (), encoder)  # encoded once for each machine, then kept
    encoder.n_texts, encoder.seconds = 0, 0.0
    with step("read tags"):
        tagged = places(contracts.read(made, contracts.TAGS)).tagged(vectors_ND)
    with step("words of tags"):
        words = vocabulary("encyclopedia", tagged.texts, encoder)
    with step("cluster"):
        clusters = sweep(tagged, config)
    vectors, history = CardVectors(encoder), History()
    with step("drop, name, merge"):
        draft = library_of(tagged, clusters, words, vectors, config, history)
    with step("taxonomy"):
        near = taxonomy.candidates(vectors.of(draft.cards), encoder)
    with step("freeze"), tempfile.TemporaryDirectory() as folder:
        rows = rows_of(draft, [branches[0] for branches in near])
        freeze(rows, draft.groups.centroid_KD, {"history": history.steps}, Path(folder))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "n_tags": tagged.n, "n_places": len(tagged.chunk_M), "k": k, "n_concepts": draft.n,
        "coherence": clusters.curve[k], "seconds": taken, "total_seconds": sum(taken.values()),
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "peak_gib": usage.ru_maxrss / 2**20, "n_cards_encoded": encoder.n_texts,
        "encoding_seconds": encoder.seconds,
        "cards_encoded_per_second": encoder.n_texts / encoder.seconds,
    }  # fmt: skip


def extrapolated(measured: dict[str, object], n_tags: int, k: int) -> dict[str, float]:
    """Seconds of each step elsewhere, on one thread of this machine.

    Clustering fits 64 k tags to k centroids, ten times, and assigns n to k: (64 · 10 · k + n) · k.
    Reading and the words of tags grow as n; naming and merging as k (members looked at are bounded
    for each concept), taxonomy as k; freezing writes n members.
    """
    n_before, k_before = _number(measured, "n_tags"), _number(measured, "k")
    by_n, by_k = n_tags / n_before, k / k_before
    work = (64 * ITERATIONS * k + n_tags) * k
    work_before = (64 * ITERATIONS * k_before + n_before) * k_before
    factor = {
        "read tags": by_n, "words of tags": by_n, "cluster": work / work_before,
        "drop, name, merge": max(by_n, by_k), "taxonomy": by_k, "freeze": by_n,
    }  # fmt: skip
    seconds = measured["seconds"]
    assert isinstance(seconds, dict)
    return {name: taken * factor[name] for name, taken in seconds.items()}


def _number(measured: dict[str, object], name: str) -> float:
    value = measured[name]
    assert isinstance(value, int | float), f"{name} is {value!r}"
    return value


def _measured_apart(tags: Path, n: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as made:
        make(tags, n, Path(made))
        command = [sys.executable, "-m", "benchmarks.library", "--measure", made]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    measured = json.loads(found.stdout)
    assert isinstance(measured, dict)
    return measured


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(json.dumps(measure(Path(sys.argv[2]))))
        sys.exit()
    last: dict[str, object] = {}
    for size in [int(given) for given in sys.argv[2:]] or SIZES:
        last = _measured_apart(Path(sys.argv[1]), size)
        print(json.dumps(last), flush=True)
    hours = {name: round(taken / 3600, 2) for name, taken in
             extrapolated(last, PAPER_TAGS, PAPER_CLUSTERS).items()}  # fmt: skip
    print(f"{PAPER_TAGS:,} tags, {PAPER_CLUSTERS:,} clusters, hours by step: {hours}")
