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


def test_an_answer_is_the_same_whatever_its_worker_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        packages = fetch.package(smollm2.PACKAGE).parent
    except fetch.NotFetchedError as error:
        pytest.skip(str(error).splitlines()[0])
    runs = []
    for name, step in (("forwards", 1), ("backwards", -1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "packages").symlink_to(packages)
        monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / name))
        with llm.connect(LocalModel(n_workers=1, n_context=512)) as client:
            runs.append(client.ask(PROMPTS[::step])[::step])
    assert runs[0] == runs[1]
    assert all(answer.text.startswith("[") for answer in runs[0])
