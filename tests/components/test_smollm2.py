"""The local language model, where its package was fetched."""

from pathlib import Path

import pytest

from components import fetch, llm, smollm2
from components.endpoints import LocalModel
from components.llm import Prompt

SCHEMA = (
    '{"type": "array", "items": {"type": "string", "maxLength": 20}, "minItems": 1, "maxItems": 3}'
)
PROMPTS = [
    Prompt("Tag.", (("cats purr", '["cats"]'),), text, 24, SCHEMA, temperature=0.5, seed=1)
    for text in ("dogs bark at the moon", "the sea is deep", "kings rule")
]


def test_two_runs_with_an_empty_cache_answer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        packages = fetch.package(smollm2.PACKAGE).parent
    except fetch.NotFetchedError as error:
        pytest.skip(str(error).splitlines()[0])
    runs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "packages").symlink_to(packages)
        monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / name))
        with llm.connect(LocalModel(n_workers=2, n_context=512)) as client:
            runs.append(client.ask(PROMPTS))
    assert runs[0] == runs[1]
    assert all(answer.text.startswith("[") for answer in runs[0])
