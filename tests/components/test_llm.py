"""The client of language models, against an endpoint on this machine."""

import dataclasses
from pathlib import Path

import pytest

from components import llm
from components.endpoints import RemoteModel
from components.llm import EndpointError, Prompt
from tests.components.endpoint import Body, Reply, serving

PROMPT = Prompt("Label.", (("cats purr", '["cats"]'),), "dogs bark", 9, schema='{"type": "object"}')


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path))


def remote(url: str, **changes: object) -> RemoteModel:
    return RemoteModel.model_validate(
        {"base_url": url, "name": "m", "n_concurrent": 2, "max_attempts": 4, **changes}
    )


def questions(n: int) -> list[Prompt]:
    return [dataclasses.replace(PROMPT, question=f"question {at}") for at in range(n)]


def echo(number: int, body: Body) -> Reply:
    messages = body["messages"]
    assert isinstance(messages, list)
    return 200, f"answer to {messages[-1]['content']}"


def test_answers_come_in_the_order_of_the_prompts_with_their_tokens() -> None:
    heard: list[int] = []
    with serving(echo) as endpoint, llm.connect(remote(endpoint.url)) as client:
        answers = client.ask(questions(5), heard.append)
    assert [answer.text for answer in answers] == [f"answer to question {at}" for at in range(5)]
    assert {answer.n_prompt_tokens for answer in answers} == {7}
    assert sorted(heard) == [1, 2, 3, 4, 5]


def test_a_prompt_is_a_chat_of_examples_with_a_schema_and_its_sampling() -> None:
    with serving(echo) as endpoint, llm.connect(remote(endpoint.url)) as client:
        client.ask([dataclasses.replace(PROMPT, temperature=0.5, seed=3)])
    ((path, body),) = endpoint.asked
    assert path == "/v1/chat/completions"
    assert body["messages"] == [
        {"role": "system", "content": "Label."},
        {"role": "user", "content": "cats purr"},
        {"role": "assistant", "content": '["cats"]'},
        {"role": "user", "content": "dogs bark"},
    ]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}},
    }
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (9, 0.5, 3)


def test_running_text_goes_to_completions_where_there_are_any_else_to_chat() -> None:
    prompt = Prompt("Name it.", (("a, b", "Letters"),), "1, 2", 4, continues_text=True)
    with serving(lambda number, body: (200, " Numbers")) as endpoint:
        for has_completions in (True, False):
            with llm.connect(remote(endpoint.url, has_completions=has_completions)) as client:
                client.ask([prompt])
    (path, body), (chat_path, _) = endpoint.asked
    assert (path, chat_path) == ("/v1/completions", "/v1/chat/completions")
    assert body["prompt"] == "Name it.\n\na, b\nAnswer: Letters\n\n1, 2\nAnswer:"
    assert body["stop"] == ["\n"]


def test_an_answer_is_asked_for_once_whatever_the_run() -> None:
    with serving(echo) as endpoint:
        for n in (2, 3):
            with llm.connect(remote(endpoint.url)) as client:
                client.ask(questions(n))
    assert len(endpoint.asked) == 3


def test_passing_failures_are_retried_after_growing_waits() -> None:
    waits: list[float] = []
    replies = {1: (500, "down"), 2: (429, "slow down"), 3: (503, "busy")}
    with (
        serving(lambda number, body: replies.get(number, (200, "here"))) as endpoint,
        llm.connect(remote(endpoint.url, n_concurrent=1), sleep=waits.append) as client,
    ):
        assert client.ask([PROMPT])[0].text == "here"
    assert [0.25 <= waits[0] <= 0.75, 0.5 <= waits[1] <= 1.5, 1 <= waits[2] <= 3] == [True] * 3


def test_an_endpoint_that_stays_down_stops_the_run_with_a_way_out() -> None:
    with (
        serving(lambda number, body: (500, "down")) as endpoint,
        llm.connect(remote(endpoint.url), sleep=lambda seconds: None) as client,
        pytest.raises(EndpointError, match=r"127\.0\.0\.1.*4 attempts.*run the same command again"),
    ):
        client.ask(questions(3))


def test_nobody_listening_is_an_endpoint_that_is_down() -> None:
    with serving(echo) as endpoint:
        url = endpoint.url
    with (
        llm.connect(remote(url), sleep=lambda seconds: None) as client,
        pytest.raises(EndpointError, match="4 attempts"),
    ):
        client.ask([PROMPT])


def test_what_was_answered_before_a_failure_is_not_asked_again() -> None:
    def second_is_down(number: int, body: Body) -> Reply:
        return echo(number, body) if number == 1 else (500, "down")

    with (
        serving(second_is_down) as endpoint,
        llm.connect(remote(endpoint.url, n_concurrent=1, max_attempts=1)) as client,
        pytest.raises(EndpointError),
    ):
        client.ask(questions(3))
    with serving(echo) as endpoint, llm.connect(remote(endpoint.url)) as client:
        client.ask(questions(3))
    assert len(endpoint.asked) == 2


def test_a_refusal_is_not_retried() -> None:
    with (
        serving(lambda number, body: (401, "bad key")) as endpoint,
        llm.connect(remote(endpoint.url)) as client,
        pytest.raises(EndpointError, match=r"refused.*bad key.*api_key_variable"),
    ):
        client.ask([PROMPT])
    assert len(endpoint.asked) == 1


def test_a_missing_key_names_its_variable_and_a_present_one_stays_out_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(echo) as endpoint:
        config = remote(endpoint.url, api_key_variable="MY_KEY")
        with llm.connect(config) as client, pytest.raises(EndpointError, match="MY_KEY"):
            client.ask([PROMPT])
        monkeypatch.setenv("MY_KEY", "confidential")
        with llm.connect(config) as client:
            client.ask([PROMPT])
    assert "confidential" not in "".join(path.read_text() for path in tmp_path.rglob("*.json"))
