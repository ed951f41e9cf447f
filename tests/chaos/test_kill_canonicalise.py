"""Stage two killed outright between any two answers: the same library, and no question twice."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from components.library import open_library
from tests.components.atlas.some_tags import families, write
from tests.components.atlas.test_consulting import config, reply
from tests.components.endpoint import serving

PROGRAM = """
import sys
from pathlib import Path
from components.atlas.canonicalisation import canonicalise
from components.atlas.library_config import CanonicaliseConfig
tags, chunks, concepts = (Path(each) for each in sys.argv[1:4])
canonicalise(tags, chunks, concepts, CanonicaliseConfig.model_validate_json(sys.argv[4]))
"""


def canonicalised(folder: Path, cache: Path, url: str, started: list[subprocess.Popen]) -> int:
    """The stage in a process of its own, on an empty output folder. Returns its exit code."""
    folders = write(folder, families(), n_chunks=12)
    places = [str(folders[name]) for name in ("tags", "chunks", "concepts")]
    started.append(
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *places, config(url).model_dump_json()],
            env={"CLEARSTORY_CACHE": str(cache), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        )
    )
    return started[-1].wait(timeout=120)


@pytest.mark.chaos
def test_killed_between_answers_it_ends_with_the_same_bytes(tmp_path):
    started: list[subprocess.Popen] = []
    kill_at: set[int] = set()

    def answered(number, body):
        if number in kill_at:
            started[-1].kill()
        return reply(number, body)

    with serving(answered) as endpoint:
        assert canonicalised(tmp_path / "whole", tmp_path / "a", endpoint.url, started) == 0
        questions = [json.dumps(body, sort_keys=True) for _, body in endpoint.asked]
        whole = open_library(tmp_path / "whole" / "concepts")
        for moment in random.Random(0).sample(range(1, len(questions) + 1), 2):
            cache = tmp_path / f"cache{moment}"
            endpoint.asked.clear()
            kill_at = {moment}
            first = tmp_path / f"killed{moment}"
            assert canonicalised(first, cache, endpoint.url, started) == -9
            kill_at = set()
            again = tmp_path / f"again{moment}"
            assert canonicalised(again, cache, endpoint.url, started) == 0
            assert open_library(again / "concepts").digest == whole.digest
            manifests = [
                each / "concepts" / "manifest.json" for each in (tmp_path / "whole", again)
            ]
            assert manifests[0].read_bytes() == manifests[1].read_bytes()
            asked = [json.dumps(body, sort_keys=True) for _, body in endpoint.asked]
            assert len(asked) <= len(questions) + 1, "more than the one in flight was asked again"
            assert set(asked) == set(questions)
