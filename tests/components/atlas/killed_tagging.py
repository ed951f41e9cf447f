"""Tagging in a process that the endpoint kills while it waits for an answer, then to the end."""

import json
import os
import signal
from multiprocessing import get_context
from pathlib import Path

import pytest

from components import contracts, hashing
from components.answers import digest_of
from components.atlas import sampling
from components.atlas.config import EmbedConfig, TagConfig
from components.atlas.tagging import tag
from components.atlas.vectors import embed
from tests.components.endpoint import Body, Endpoint, Reply, serving
from tests.components.written_corpus import Corpus, Text, write_corpus

_WORDS = ("liver", "queen", "graph", "harbour", "sonnet", "enzyme", "orbit")


def killed_then_resumed(
    folder: Path, n_chunks: int, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill at the nth request and resume.

    Asserts that no kept answer is asked for again, that an undisturbed run makes the same bytes,
    and that what is asked twice was at most in flight.
    """
    monkeypatch.setattr(sampling, "FEWEST_WORDPIECES", 1)
    corpus = _corpus(folder, n_chunks)
    with serving(_said) as endpoint:
        monkeypatch.setenv("CLEARSTORY_CACHE", str(folder / "cache"))
        _killed(corpus, endpoint, nth)
        kept = {path.stem for path in (folder / "cache").rglob("*.json")}
        before = _asked(endpoint)
        resumed = _tagged(corpus, "resumed", endpoint.url)
        after = _asked(endpoint)[len(before) :]
        monkeypatch.setenv("CLEARSTORY_CACHE", str(folder / "another cache"))
        undisturbed = _tagged(corpus, "undisturbed", endpoint.url)
    assert not kept & set(after)
    assert len(set(after)) == len(after)
    assert len(set(before) & set(after)) <= _N_CONCURRENT
    assert contracts.manifest_of(resumed) == contracts.manifest_of(undisturbed)


_N_CONCURRENT = 3


def _said(number: int, body: Body) -> Reply:
    """Depends on the request alone; some answers make no sense at the first seed."""
    drawn = int(digest_of(body)[:8], 16)
    if body["seed"] == 0 and drawn % 4 == 0:
        return 200, "Sorry?"
    return 200, json.dumps({"tags": [_WORDS[drawn % 7], _WORDS[drawn // 7 % 7]]})


def _killed(corpus: Corpus, endpoint: Endpoint, nth: int) -> None:
    child = get_context("fork").Process(target=_tagged, args=(corpus, "killed", endpoint.url))

    def kills(number: int, body: Body) -> Reply:
        if number == nth:
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
        return _said(number, body)

    endpoint.reply = kills
    child.start()
    child.join()
    endpoint.reply = _said
    assert child.exitcode == -signal.SIGKILL


def _tagged(corpus: Corpus, name: str, url: str) -> Path:
    folder = corpus.documents.parent / name
    folder.mkdir()
    config = {
        "tagger": "language_model", "encoder": hashing.NAME, "n_train": 1_000, "n_held_out": 0,
        "n_retries": 1, "fill_to": 2, "min_similarity": -1.0,
        "language_model": {
            "kind": "remote", "base_url": url, "name": "m", "n_concurrent": _N_CONCURRENT,
        },
    }  # fmt: skip
    vectors = corpus.documents.parent / "vectors"
    tag(corpus.documents, corpus.chunks, vectors, folder, TagConfig.model_validate(config))
    return folder


def _corpus(folder: Path, n_chunks: int) -> Corpus:
    passages = [
        f"The {_WORDS[at % 7]} and the {_WORDS[at // 7 % 7]}, part {at}. " for at in range(n_chunks)
    ]
    text = Text("t", "train", "x", [(passage, {}) for passage in passages])
    corpus = write_corpus(folder, [text], n_concepts=1)
    (folder / "vectors").mkdir()
    embed(corpus.documents, corpus.chunks, folder / "vectors", EmbedConfig(encoder=hashing.NAME))
    return corpus


def _asked(endpoint: Endpoint) -> list[str]:
    return [digest_of(body) for _, body in endpoint.asked]
