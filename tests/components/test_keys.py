"""A key holds all that may change the bytes, and nothing that may not."""

from components import keys
from model.config import Config


class OneNumber(Config):
    n: int


def key(n: int = 1, digest: str = "d") -> keys.StageKey:
    return keys.key_of("read", "components.chunks", OneNumber(n=n), {"tags": [digest]}, {})


def test_config_and_inputs_change_the_key():
    assert key().digest == key().digest
    assert len({key().digest, key(n=2).digest, key(digest="e").digest}) == 3


def test_a_key_covers_the_modules_that_its_stage_reaches_and_not_what_wraps_stages():
    code = keys.code_of("components.chunks")
    assert {"components.chunks", "components.contracts", "components.manifests"} <= code.keys()
    assert "model.config" in code
    assert "components.runner" not in code


def test_a_key_covers_modules_that_are_started_by_name():
    assert {"components.rank", "model.zero"} <= keys.code_of("components.training.stage").keys()


def test_differences_are_said_in_words():
    assert key(n=2).differences(key()) == ["config.n: 1 -> 2"]
