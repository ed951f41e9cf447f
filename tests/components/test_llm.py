"""The client of language models, against an endpoint on this machine."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from components import llm
from components.accounts import Account
from components.answers import Answer
from components.endpoints import LocalModel, RemoteModel
from components.llm import EndpointError, Prompt
from components.questions import request_of
from tests.components.endpoint import Body, Raw, Reply, serving

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


def test_every_lane_waits_as_long_as_the_endpoint_asks() -> None:
    waits: list[float] = []
    busy = Raw(429, '{"error": {"message": "slow down"}}', {"Retry-After": "7"})

    def first_two_are_too_many(number: int, body: Body) -> Reply:
        return busy if number <= 2 else echo(number, body)

    with (
        serving(first_two_are_too_many) as endpoint,
        llm.connect(remote(endpoint.url), sleep=waits.append) as client,
    ):
        client.ask(questions(2))
    assert len(waits) >= 2
    assert all(6 < seconds <= 7 for seconds in waits)


def test_a_pause_too_long_to_wait_for_ends_the_run_and_says_when_to_come_back() -> None:
    busy = Raw(429, "{}", {"Retry-After": "7200"})
    with (
        serving(lambda number, body: busy) as endpoint,
        llm.connect(remote(endpoint.url, longest_wait_seconds=60)) as client,
        pytest.raises(EndpointError, match=r"7200 s.*longest_wait_seconds \(60\)"),
    ):
        client.ask([PROMPT])


def test_an_answer_that_takes_too_long_is_asked_for_again() -> None:
    given_up = threading.Event()

    def first_hangs(number: int, body: Body) -> Reply:
        if number == 1:
            given_up.wait(10)
        return echo(number, body)

    with (
        serving(first_hangs) as endpoint,
        llm.connect(
            remote(endpoint.url, n_concurrent=1, timeout_seconds=0.1), sleep=lambda seconds: None
        ) as client,
    ):
        assert client.ask([PROMPT])[0].text == "answer to dogs bark"
        given_up.set()
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    "payload",
    ["", "<html>busy</html>", "{", "[]", "null", '{"choices": []}', '{"choices": [{"text": 3}]}'],
)
def test_what_is_no_completion_is_asked_for_again(payload: str) -> None:
    with (
        serving(lambda n, body: Raw(200, payload) if n == 1 else echo(n, body)) as endpoint,
        llm.connect(remote(endpoint.url), sleep=lambda seconds: None) as client,
    ):
        assert client.ask([PROMPT])[0].text == "answer to dogs bark"


def test_an_answer_of_nothing_is_an_answer() -> None:
    nothing = '{"choices": [{"message": {"content": null}}]}'
    with (
        serving(lambda number, body: Raw(200, nothing)) as endpoint,
        llm.connect(remote(endpoint.url)) as client,
    ):
        assert client.ask([PROMPT]) == [Answer("", 0, 0)]
    assert len(endpoint.asked) == 1


def test_a_slow_answer_holds_up_its_own_lane_alone() -> None:
    others_answered = threading.Event()

    def first_waits_for_the_rest(number: int, body: Body) -> Reply:
        if body["messages"] == first:
            assert others_answered.wait(10)
        elif number == 5:
            others_answered.set()
        return echo(number, body)

    prompts = questions(5)
    with serving(first_waits_for_the_rest) as endpoint:
        config = remote(endpoint.url)
        first = request_of(prompts[0], config)["messages"]
        with llm.connect(config) as client:
            answers = client.ask(prompts)
    assert [answer.text for answer in answers] == [f"answer to question {at}" for at in range(5)]


def test_the_same_prompt_twice_is_asked_once() -> None:
    with serving(echo) as endpoint, llm.connect(remote(endpoint.url)) as client:
        first, second = client.ask([PROMPT, PROMPT])
    assert first == second
    assert len(endpoint.asked) == 1


def test_two_clients_that_want_the_same_answers_at_once_pay_for_each_once() -> None:
    both_there = threading.Barrier(2, timeout=10)

    def ask(url: str) -> list[str]:
        with llm.connect(remote(url)) as client:
            both_there.wait()
            return [answer.text for answer in client.ask(questions(6))]

    with serving(echo) as endpoint, ThreadPoolExecutor(2) as pool:
        one, other = pool.map(ask, [endpoint.url] * 2)
    assert one == other
    assert len(endpoint.asked) == 6


def test_money_is_counted_apart_for_what_is_asked_and_what_was_kept() -> None:
    prices = {"usd_per_million_prompt_tokens": 1e6, "usd_per_million_completion_tokens": 2e6}
    with serving(echo) as endpoint:
        for n in (2, 3):
            with llm.connect(remote(endpoint.url, **prices)) as client:
                client.ask(questions(n))
    assert client.ledger.paid == Account(1, 7, 2, cost_usd=7 + 2 * 2)
    assert client.ledger.kept == Account(2, 14, 4, cost_usd=22)
    assert client.ledger.total == Account(3, 21, 6, cost_usd=33)


def test_requests_keep_to_the_endpoints_rate() -> None:
    waits: list[float] = []
    with (
        serving(echo) as endpoint,
        llm.connect(
            remote(endpoint.url, n_concurrent=1, requests_per_minute=1), sleep=waits.append
        ) as client,
    ):
        client.ask(questions(3))
    assert [round(seconds, -1) for seconds in waits] == [60, 120]


def test_a_local_worker_reads_the_examples_by_themselves_before_each_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(echo) as endpoint:
        monkeypatch.setattr(llm, "serve_smollm2", lambda *sizes: nullcontext([endpoint.url]))
        others = dataclasses.replace(PROMPT, shots=(("fish swim", '["fish"]'),))
        with llm.connect(LocalModel()) as client:
            client.ask([*questions(2), others])
    asked = [body for _, body in endpoint.asked]
    lasts = [body["messages"][-1]["content"] for body in asked]  # type: ignore[index]
    assert lasts == ["", "question 0", "", "question 1", "", "dogs bark"]
    assert [body["cache_prompt"] for body in asked] == [False, True, True, True, False, True]
    assert client.ledger.paid.n_answers == 3
