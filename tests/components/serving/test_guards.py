"""Nothing comes in that should not, and every answer goes out with its headers."""

import asyncio
from typing import Any

import pytest

from components.explaining.opened import Opened
from components.serving.app import application
from tests.components.serving.asking import called, client, config, scope, text

TOKEN = "a-token-of-some-length"


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SERVE_TOKEN", TOKEN)
    return "env:SERVE_TOKEN"


def test_wrong_token_opens_nothing_but_the_page_and_the_health(opened: Opened, token: str) -> None:
    with client(opened, token_reference=token) as ask:
        wrong = {"Authorization": f"Bearer {TOKEN[:-1]}?"}
        for path in ("/concepts", "/metrics", "/kept/a/answer.json", "/nothing"):
            for headers in ({}, wrong):
                refused = ask.get(path, headers=headers)
                assert refused.status_code == 401, path
                assert refused.headers["www-authenticate"] == "Bearer"
                assert "Authorization: Bearer TOKEN" in refused.json()["message"]
        assert ask.post("/generate", json=text(), headers=wrong).status_code == 401
        for path in ("/", "/page/main.js", "/healthz", "/openapi.json"):
            assert ask.get(path).status_code == 200, path
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert ask.post("/generate", json=text(), headers=right).status_code == 200


def test_foreign_host_is_refused_by_name(opened: Opened) -> None:
    with client(opened, hosts=("localhost", "::1")) as ask:
        for name in ("localhost", "localhost:8000", "[::1]:8000"):
            assert ask.get("/healthz", headers={"host": name}).status_code == 200, name
        refused = ask.get("/healthz", headers={"host": "evil.example:8000"})
    assert refused.status_code == 421
    assert "--allow-host evil.example" in refused.json()["message"]


def test_body_that_says_it_is_too_large_is_not_read(opened: Opened) -> None:
    async def never() -> dict[str, Any]:
        raise AssertionError("the body was read")

    app = application(opened, config(limits={"body_bytes": 100})).asgi
    status, problem = asyncio.run(called(app, scope("/generate", b"x" * 101), never))
    assert (status, problem["error"]) == (413, "body_too_large")
    assert "101 bytes, and the limit is 100" in problem["message"]


def test_endless_body_is_read_no_further_than_the_limit(opened: Opened) -> None:
    n_read = 0

    async def endless() -> dict[str, Any]:
        nonlocal n_read
        n_read += 1
        return {"type": "http.request", "body": b"x" * 40, "more_body": True}

    app = application(opened, config(limits={"body_bytes": 100})).asgi
    status, _ = asyncio.run(called(app, scope("/generate", b""), endless))
    assert (status, n_read) == (413, 3)


def test_body_that_does_not_arrive_is_given_up(opened: Opened) -> None:
    async def silent() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    app = application(opened, config(limits={"body_seconds": 0.01})).asgi
    status, problem = asyncio.run(called(app, scope("/generate", b"x"), silent))
    assert (status, problem["error"]) == (408, "slow_body")


def test_every_answer_forbids_framing_foreign_scripts_and_reading_by_other_sites(
    opened: Opened,
) -> None:
    with client(opened) as ask:
        for path in ("/", "/page/main.js", "/nothing", "/metrics", "/concepts"):
            headers = ask.get(path, headers={"Origin": "https://evil.example"}).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert not [name for name in headers if name.startswith("access-control-")]


def test_form_of_another_site_cannot_ask(opened: Opened) -> None:
    with client(opened) as ask:
        for kind in ("text/plain", "application/x-www-form-urlencoded", None):
            headers = {} if kind is None else {"Content-Type": kind}
            sent = ask.post("/generate", content='{"prompt": "the"}', headers=headers)
            assert sent.status_code == 422, kind


def test_ending_server_refuses_work_and_says_so_to_probes(opened: Opened) -> None:
    made = application(opened, config())
    made.desk.is_draining = True

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    status, problem = asyncio.run(called(made.asgi, scope("/generate", b"{}"), whole))
    assert (status, problem["error"]) == (503, "ending")
    probe = {**scope("/healthz", b""), "method": "GET"}
    status, health = asyncio.run(called(made.asgi, probe, whole))
    assert (status, health["is_ready"]) == (503, False)
