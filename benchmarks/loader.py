"""The loader on one core: against a loop over windows, against Arrow, and at 10^12 tokens.

The stream is made up: 1.3 M tokens in spans of about 107, each chunk with two concepts. A step is
12 windows of 256 tokens with the chunk of every token, as in `demo`.
"""

import json
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import torch

from benchmarks.measure import Contest, race
from components import contracts, loader
from components.loader import Loader
from components.packing import shards
from components.packing.spans import Piece, Span, SplitWriter, table
from components.shards import MAX_CONCEPTS
from components.tokens import TokenStream
from model.diffusion import Batch
from model.tokenizer import train
from tests.components.simulated import SimulatedPlace

LENGTH, SEQUENCES, STEPS = 256, 12, 100
N_SPANS, SPAN_CHARS, VOCAB_SIZE, BLOCK = 12_000, 104, 264, 32


def contest() -> Contest:
    """Batches with chunks and labels: a loop over windows and tokens, and ours."""
    with tempfile.TemporaryDirectory() as folder:
        stream = written(Path(folder) / "tokens")
        ours, theirs = _loader(stream), _Loop(stream)
        return _raced("loader, against a loop over windows", theirs.batch, ours.batch)


def against_arrow() -> Contest:
    """The same windows cut beforehand into rows of a mapped Arrow file."""
    with tempfile.TemporaryDirectory() as folder:
        stream = written(Path(folder) / "tokens")
        ours, theirs = _loader(stream), _Arrow(stream, Path(folder) / "arrow")
        return _raced("loader, against datasets on Arrow", theirs.batch, ours.batch)


def opening() -> str:
    """Processor seconds to open 10^12 tokens in 10,000 shards, and to go on with a late step."""
    with tempfile.TemporaryDirectory() as folder:
        place = SimulatedPlace(Path(folder) / "tokens", n_shards=10_000, shard_tokens=10**8)
        settings = {"length": 4096, "batch_sequences": 256, "seed": 0}
        state = loader.of_stream(TokenStream(place), {}, **settings).state(900_000)
        began = time.process_time()
        batches = loader.of_stream(TokenStream(place), {}, **settings)
        started = time.process_time() - began
        batches.restore(json.loads(json.dumps(state)))
        first = batches.batch(900_000)
        resumed = time.process_time() - began
        assert len(first) == 256
    return (
        f"{'loader, 10^12 tokens (simulated)':<32} start {started:.2f} s   resume with the first "
        f"batch of 2^20 tokens {resumed:.2f} s"
    )


def written(folder: Path) -> TokenStream:
    """The made-up stream as an artifact."""
    folder.mkdir()
    tokenizer = train([], VOCAB_SIZE, folder / "tokenizer.json")
    draw = np.random.default_rng(0)
    spans: list[Span] = []
    parts, bounds = [], {}
    for split, n in (("train", N_SPANS), ("valid", 10), ("test", 10)):
        writer = SplitWriter(folder / split, split, np.dtype(np.uint16), tokenizer.specials)
        for number in range(n):
            ids = draw.integers(0, 256, size=int(draw.integers(4, 2 * SPAN_CHARS))).tolist()
            piece = Piece(
                chunk_id=len(spans) + number, doc_id=f"d{number // 3}", split=split, domain="prose",
                source="made-up", ids=ids, n_bytes=len(ids), opens_document=number % 3 == 0,
                closes_document=number % 3 == 2,
            )  # fmt: skip
            writer.add(piece, [number % 7, 7 + number % 11])
        writer.close(BLOCK)
        first = sum(span.n_tokens for span in spans)
        spans += writer.spans
        bounds[split] = [first, sum(span.n_tokens for span in spans)]
        parts.append(writer.path)
    shards.write(
        parts, spans, folder, np.dtype(np.uint16), block=BLOCK, shard_tokens=bounds["test"][1]
    )
    facts = {"vocab_size": VOCAB_SIZE, "block": BLOCK, "splits": bounds}
    (folder / "tokens.json").write_text(json.dumps(facts))
    contracts.write_batches([table(spans)], folder, contracts.TOKENS)
    return TokenStream(folder)


def _loader(stream: TokenStream) -> Loader:
    return loader.of_stream(stream, {}, length=LENGTH, batch_sequences=SEQUENCES, seed=0)


def _raced(name: str, reference: Callable[[int], Batch], ours: Callable[[int], Batch]) -> Contest:
    for step in (0, STEPS):
        found, expected = ours(step), reference(step)
        assert torch.equal(found.ids_BT, expected.ids_BT)
        assert torch.equal(found.chunk_BT, expected.chunk_BT)
        assert torch.equal(found.concepts_CM, expected.concepts_CM)
        assert torch.equal(found.labelled_C, expected.labelled_C)
    measured = race(
        name,
        lambda: [reference(step) for step in range(STEPS)],
        lambda: [ours(step) for step in range(STEPS)],
        agreement="batches equal",
        repeats=3,
    )
    rate = STEPS * SEQUENCES * LENGTH / measured.seconds
    return replace(measured, agreement=f"{rate:,.0f} tokens/s, batches equal")


class _Loop:
    """Window by window, token by token, in plain Python."""

    def __init__(self, stream: TokenStream) -> None:
        self._stream, self._order = stream, _loader(stream).order
        self._ids = np.load(stream.tokenizer_path.parent / "stream.npy", mmap_mode="r")
        self._starts = stream.spans.token_start.tolist()

    def batch(self, step: int) -> Batch:
        """The same as the loader's."""
        places = step * SEQUENCES + np.arange(SEQUENCES)
        windows = self._order.at(places, 0).element_N.tolist()
        ids, chunks, spans = [], [], list[int]()
        for window in windows:
            own, local = [], dict[int, int]()
            ids_T = self._ids[window * LENGTH : (window + 1) * LENGTH].tolist()
            for position, token_id in enumerate(ids_T, window * LENGTH):
                span = bisect_right(self._starts, position) - 1
                is_text = token_id not in self._stream.tokenizer.special_names
                if is_text and self._stream.spans.chunk_id[span] >= 0:
                    if span not in local:
                        local[span] = len(spans)
                        spans.append(span)
                    own.append(local[span])
                else:
                    own.append(-1)
            ids.append(ids_T)
            chunks.append(own)
        return Batch(
            ids_BT=torch.tensor(ids),
            chunk_BT=torch.tensor(chunks),
            concepts_CM=torch.tensor([self._stream.spans.concepts_NM[s].tolist() for s in spans]),
            labelled_C=torch.tensor([bool(self._stream.spans.labelled[s]) for s in spans]),
            sample_ids_B=torch.from_numpy(places),
        )


class _Arrow:
    """Every window a row of a Hugging Face dataset: ids, chunk of each token, chunk tables."""

    def __init__(self, stream: TokenStream, folder: Path) -> None:
        self._order = _loader(stream).order
        rows: dict[str, list[list[int]]] = {"ids": [], "chunk": [], "concepts": [], "labelled": []}
        for window in range(stream.n_windows("train", LENGTH)):
            one = stream.batch("train", LENGTH, np.array([window]))
            rows["ids"].append(one.ids_BT[0].tolist())
            rows["chunk"].append(one.chunk_BT[0].tolist())
            rows["concepts"].append(one.concepts_CM.flatten().tolist())
            rows["labelled"].append(one.labelled_C.tolist())
        datasets.disable_progress_bars()
        datasets.Dataset.from_dict(rows).save_to_disk(str(folder))
        self._rows = datasets.load_from_disk(str(folder)).with_format("arrow")

    def batch(self, step: int) -> Batch:
        """The same as the loader's."""
        places = step * SEQUENCES + np.arange(SEQUENCES)
        found = self._rows[self._order.at(places, 0).element_N.tolist()]
        ids, chunk, concepts, labelled = (
            found.column(name).combine_chunks() for name in ("ids", "chunk", "concepts", "labelled")
        )
        chunk_BT = chunk.values.to_numpy().reshape(SEQUENCES, LENGTH)
        n_before_B1 = np.append(0, np.cumsum(labelled.value_lengths().to_numpy())[:-1])[:, None]
        return Batch(
            ids_BT=torch.from_numpy(ids.values.to_numpy().reshape(SEQUENCES, LENGTH).copy()),
            chunk_BT=torch.from_numpy(np.where(chunk_BT < 0, -1, chunk_BT + n_before_B1)),
            concepts_CM=torch.from_numpy(
                concepts.values.to_numpy().reshape(-1, MAX_CONCEPTS).copy()
            ),
            labelled_C=torch.from_numpy(
                labelled.values.to_numpy(zero_copy_only=False).astype(np.bool_)
            ),
            sample_ids_B=torch.from_numpy(places),
        )
