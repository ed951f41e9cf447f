"""A job over a few packed documents that one process trains in a moment."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components import feeding
from components.data_config import DataConfig
from components.job import Job
from components.loader import Batches
from components.tokens import TokenStream
from model.config import NetworkConfig
from model.train_config import ObjectiveConfig, OptimConfig, SavingConfig, TrainingConfig
from model.zero_config import ZeroConfig
from tests.components.packed import packed
from tests.components.written_corpus import Text

LENGTH, SEQUENCES, N_STEPS, N_CONCEPTS = 16, 4, 7, 3
TEXTS = [
    *(
        Text(f"b{i}", "train", "code", [(f"{i}{i + 1} " * 9, {0: 1.0}), ("so it was", {2: 0.7})])
        for i in range(9)
    ),
    Text("v", "valid", "prose", [("qrs tuv", {1: 1.0})]),
    Text("t", "test", "prose", [("z", {0: 1.0})]),
]


def write_tokens(folder: Path, shard_tokens: int = 100) -> Path:
    """The documents as a token stream in several shards."""
    return packed(folder, TEXTS, shard_tokens=shard_tokens)


def write_dataset(folder: Path, letters: str) -> Path:
    """A folder that `datasets` loads: two parquet files of documents in these letters."""
    folder.mkdir(parents=True)
    for number, letter in enumerate(letters):
        texts = [f"{letter}{i} " * (2 + 5 * i % 7) for i in range(8)]
        pq.write_table(pa.table({"text": texts}), folder / f"{number}.parquet", row_group_size=3)
    return folder


def job(tokens: Path, folder: Path, data: DataConfig, **changes: object) -> Job:
    """The job; `changes` are members of it."""
    folder.mkdir(exist_ok=True)
    stream = TokenStream(tokens)
    network = NetworkConfig(
        width=16, n_layers=1, n_heads=2, n_kv_heads=1, mlp_width=24, max_length=LENGTH, block=4,
        rank=3, top_k=2, top_k_unknown=2,
    )  # fmt: skip
    training = TrainingConfig(
        n_tokens=N_STEPS * SEQUENCES * LENGTH, batch_sequences=SEQUENCES, length=LENGTH,
        dtype="float32", optim=OptimConfig(peak_lr=5e-3), objective=ObjectiveConfig(),
        validations=1, log_every=1, saving=SavingConfig(every_steps=2), seed=3,
    )  # fmt: skip
    made = Job(
        tokens=str(tokens),
        folder=str(folder),
        network=network.language_model(
            vocab_size=stream.vocab_size, n_known=N_CONCEPTS, specials=stream.specials
        ),
        start_from="",
        prevalence=(0.3,) * N_CONCEPTS,
        training=training,
        domain_weights={},
        data=data,
        validation_sequences=2,
        zero=ZeroConfig(),
    )
    return made.model_copy(update=changes)


@contextmanager
def fed(wanted: Job, rank: int = 0, world: int = 1) -> Iterator[Batches]:
    """A rank's batches."""
    cache = Path(wanted.folder) / feeding.CACHE_FOLDER
    with (
        feeding.opened(Path(wanted.tokens), wanted.data, cache) as stream,
        feeding.fed(wanted, stream, rank=rank, world=world) as batches,
    ):
        yield batches


def by_sample(parts: list[object]) -> Mapping[int, list[int]]:
    """Token ids by sample id, of several ranks' batches."""
    return {
        name: ids
        for part in parts
        for name, ids in zip(part.sample_ids_B.tolist(), part.ids_BT.tolist(), strict=True)
    }
