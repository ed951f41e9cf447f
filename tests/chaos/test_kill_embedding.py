"""SIGKILL while a corpus is encoded: what was finished is kept, and the bytes are the same."""

from multiprocessing import get_context
from pathlib import Path

import pytest

from components import contracts, hashing
from components.atlas.config import EmbedConfig
from components.atlas.vectors import embed
from components.engine_config import EngineConfig
from tests.components.interrupted import KILLED, Moment
from tests.components.written_chunks import write_chunks

pytestmark = pytest.mark.chaos
CONFIG = EmbedConfig(
    encoder=hashing.NAME, batch_chunks=2, shard_chunks=4, engine=EngineConfig(n_workers=1)
)
MOMENTS = [
    # Two batches a shard.
    *(
        (("components.hashing", "HashingEmbedder.embed", nth), (nth - 1) // 2)
        for nth in range(1, 13)
    ),
    *((("components.atlas.chunk_shards", "digest_of", nth), nth - 1) for nth in (1, 4, 6)),
    (("components.atlas.vectors", "_put_together", 1), 6),
    (("components.contracts", "seal", 1), 6),
]
"""Where it is killed, and how many of the six shards were finished before."""


def encode(given: dict[str, Path], folder: Path, scratch: Path, events: object) -> None:
    folder.mkdir()
    embed(given["documents"], given["chunks"], folder, CONFIG, events=events, scratch=scratch)


def killed(moment: Moment, *arguments: object) -> None:
    moment.arm()
    encode(*arguments)


@pytest.mark.parametrize(("moment", "n_finished"), MOMENTS)
def test_a_killed_encoding_repeats_the_open_shard_alone(moment, n_finished, tmp_path):
    given, told, scratch = write_chunks(tmp_path), [], tmp_path / "scratch"
    (tmp_path / "of_whole").mkdir()
    encode(given, tmp_path / "whole", tmp_path / "of_whole", told.append)
    expected = contracts.manifest_of(tmp_path / "whole")
    scratch.mkdir()
    arguments = (Moment(*moment), given, tmp_path / "killed", scratch, told.append)
    child = get_context("fork").Process(target=killed, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == KILLED
    told.clear()
    encode(given, tmp_path / "again", scratch, told.append)
    assert contracts.manifest_of(tmp_path / "again") == expected
    assert len([event for event in told if not event.message]) == 6 - n_finished
