"""A key holds all that may change the bytes, and nothing that may not."""

from typing import ClassVar

from pydantic import Field

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


class Run(Config):
    HOW: ClassVar[tuple[str, ...]] = ("ranks", "sizes.parts")
    n: int = 1
    ranks: int = 1
    sizes: dict[str, int] = Field(default_factory=dict)


def run_key(**changes: object) -> keys.StageKey:
    return keys.key_of("read", "components.chunks", Run.model_validate(changes), {}, {})


def test_what_only_says_how_changes_the_key_and_not_the_lineage():
    plain = run_key(sizes={"parts": 1, "whole": 5})
    for other in (
        run_key(ranks=2, sizes={"parts": 1, "whole": 5}),
        run_key(sizes={"parts": 3, "whole": 5}),
    ):
        assert other.digest != plain.digest
        assert other.lineage == plain.lineage
    assert run_key(n=2, sizes={"parts": 1, "whole": 5}).lineage != plain.lineage
    assert run_key(sizes={"parts": 1, "whole": 6}).lineage != plain.lineage
