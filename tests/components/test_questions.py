"""Prompts as requests."""

import dataclasses

from components.answers import digest_of
from components.endpoints import LocalModel, RemoteModel
from components.questions import Prompt, opening, request_of, tokens_at_most

PROMPT = Prompt("Label.", (("cats purr", '["cats"]'),), "dogs bark", 9, schema='{"type": "object"}')
REMOTE = RemoteModel(base_url="http://x/v1", name="m")


def test_whatever_an_answer_depends_on_changes_the_digest() -> None:
    changes = {
        "system": "Tag.", "shots": (), "question": "dogs", "max_tokens": 8, "schema": "{}",
        "temperature": 0.1, "seed": 1,
    }  # fmt: skip
    prompts = [
        PROMPT,
        *(dataclasses.replace(PROMPT, **{key: value}) for key, value in changes.items()),
    ]
    requests = [request_of(prompt, REMOTE) for prompt in prompts]
    requests.append(request_of(PROMPT, REMOTE.model_copy(update={"name": "n"})))
    assert len({digest_of(request) for request in requests}) == len(requests) == 9


def test_where_and_how_fast_it_is_asked_does_not() -> None:
    elsewhere = REMOTE.model_copy(
        update={"base_url": "http://y/v1", "n_concurrent": 3, "requests_per_minute": 9}
    )
    assert request_of(PROMPT, REMOTE) == request_of(PROMPT, elsewhere)


def test_an_endpoint_without_schemas_is_told_the_schema_in_words() -> None:
    request = request_of(PROMPT, REMOTE.model_copy(update={"obeys_schemas": False}))
    assert "response_format" not in request
    assert '{"type": "object"}' in str(request["messages"])


def test_the_longest_answer_goes_by_the_endpoints_name_for_it() -> None:
    config = REMOTE.model_copy(update={"limit_field": "max_completion_tokens"})
    request = request_of(PROMPT, config)
    assert request["max_completion_tokens"] == 9
    assert "max_tokens" not in request


def test_an_opening_is_what_prompts_of_the_same_examples_share() -> None:
    other = dataclasses.replace(PROMPT, question="fish swim", seed=4)
    assert opening(PROMPT) == opening(other)
    first, whole = (request_of(p, LocalModel())["messages"] for p in (opening(PROMPT), PROMPT))
    assert isinstance(first, list)
    assert isinstance(whole, list)
    assert first[:-1] == whole[:-1]


def test_tokens_are_counted_by_bytes_since_some_scripts_have_a_token_a_sign() -> None:
    assert tokens_at_most(Prompt("", (), "日本語", max_tokens=5)) == 3 + 5
