"""Prompts to answers, from any OpenAI-compatible endpoint: the one home of the client.

    with llm.connect(config.language_model) as client:
        answers = client.ask(prompts)

Prompt i goes to lane i mod n and lanes answer in order, so that a local model, whose answers can
depend on what it read before, answers alike each time. Answers are kept on disk (answers.py):
a run that was killed asks only what is missing. A key is named in the config and read here alone.
"""

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import openai

from components import fetch
from components.answers import Answer, Answers
from components.endpoints import LocalModel, RemoteModel
from components.smollm2 import serve_smollm2

_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 60.0

Request = dict[str, object]


class EndpointError(RuntimeError):
    """A language model could not be asked. The message names it and says what to do."""


@dataclass(frozen=True)
class Prompt:
    """Worked examples, then the question. `schema` is the JSON schema an answer must obey."""

    system: str
    shots: tuple[tuple[str, str], ...]
    question: str
    max_tokens: int
    schema: str = ""
    temperature: float = 0.0
    seed: int = 0
    continues_text: bool = False
    """Sent as running text to complete up to the end of the line, where the endpoint can: small
    models follow examples better that way than as turns of a chat."""


@contextmanager
def connect(
    config: LocalModel | RemoteModel, sleep: Callable[[float], None] = time.sleep
) -> Iterator["Client"]:
    """A client. A local model is served from the first question that has no answer yet."""
    with ExitStack() as opened:

        def lanes() -> list["_Lane"]:
            if isinstance(config, RemoteModel):
                urls, key = [config.base_url] * config.n_concurrent, _key(config)
            else:
                urls, key = opened.enter_context(
                    serve_smollm2(config.n_workers, config.n_context)
                ), "none"  # fmt: skip
            return [
                _Lane(opened.enter_context(_connection(url, key, config)), config, number, sleep)
                for number, url in enumerate(urls)
            ]

        yield Client(config, lanes, Answers(fetch.cache_folder() / "llm"))


class Client:
    """Asks one model. Made by `connect`."""

    def __init__(
        self,
        config: LocalModel | RemoteModel,
        make_lanes: Callable[[], list["_Lane"]],
        answers: Answers,
    ) -> None:
        self._config = config
        self._make_lanes = make_lanes
        self._lanes: list[_Lane] = []
        self._answers = answers

    def ask(
        self, prompts: Sequence[Prompt], heard: Callable[[int], None] = lambda n_answers: None
    ) -> list[Answer]:
        """Answers in the order of the prompts. `heard` is told how many there are so far."""
        requests = [_request(prompt, self._config) for prompt in prompts]
        found = {
            at: answer
            for at, request in enumerate(requests)
            if (answer := self._answers.get(request)) is not None
        }
        if len(found) < len(requests):
            self._ask_missing(requests, found, heard)
        return [found[at] for at in range(len(requests))]

    def _ask_missing(
        self, requests: list[Request], found: dict[int, Answer], heard: Callable[[int], None]
    ) -> None:
        self._lanes = self._lanes or self._make_lanes()
        stop = threading.Event()

        def work(number: int) -> None:
            mine = [at for at in range(number, len(requests), len(self._lanes)) if at not in found]
            for at in mine:
                if stop.is_set():
                    return
                answer = self._lanes[number].answer(requests[at])
                self._answers.put(requests[at], answer)
                found[at] = answer
                heard(len(found))

        with ThreadPoolExecutor(len(self._lanes)) as pool:
            working = [pool.submit(work, number) for number in range(len(self._lanes))]
            try:
                for each in working:
                    each.result()
            finally:  # a failure or Ctrl-C ends the other lanes after the answer they wait for
                stop.set()


class _Lane:
    """One connection, used by one thread, with its own seeded jitter."""

    def __init__(
        self,
        connection: openai.OpenAI,
        config: LocalModel | RemoteModel,
        number: int,
        sleep: Callable[[float], None],
    ) -> None:
        self._connection = connection
        self._config = config
        self._jitter = random.Random(number)
        self._sleep = sleep

    def answer(self, request: Request) -> Answer:
        """The answer, after as many attempts as the config allows."""
        wait_seconds = _FIRST_WAIT_SECONDS
        for attempt in range(1, self._config.max_attempts + 1):
            try:
                return self._once(request)
            except (
                openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError,
            ) as error:  # fmt: skip
                if attempt == self._config.max_attempts:
                    raise EndpointError(self._gave_up(error)) from error
                self._sleep(wait_seconds * self._jitter.uniform(0.5, 1.5))
                wait_seconds = min(2 * wait_seconds, _LONGEST_WAIT_SECONDS)
            except openai.APIError as error:
                raise EndpointError(
                    f"{self._connection.base_url} refused a prompt for {self._config.name}: "
                    f"{error.message}. Look at name, api_key_variable and the endpoint's limits."
                ) from error
        raise AssertionError("max_attempts is at least 1")

    def _once(self, request: Request) -> Answer:
        body: dict[str, Any] = dict(request)
        if "prompt" in body:
            completion = self._connection.completions.create(**body)
            text, usage = completion.choices[0].text, completion.usage
        else:
            chat = self._connection.chat.completions.create(**body)
            text, usage = chat.choices[0].message.content or "", chat.usage
        if usage is None:
            return Answer(text, 0, 0)
        return Answer(text, usage.prompt_tokens, usage.completion_tokens)

    def _gave_up(self, error: openai.APIError) -> str:
        return (
            f"{self._connection.base_url} gave no answer for {self._config.name} in "
            f"{self._config.max_attempts} attempts: {error.message} Is the endpoint up? What it "
            f"answered so far is kept: run the same command again and only the rest is asked."
        )


def _request(prompt: Prompt, config: LocalModel | RemoteModel) -> Request:
    """Everything an answer depends on, as the endpoint gets it."""
    sampling: Request = {
        "model": config.name,
        "max_tokens": prompt.max_tokens,
        "temperature": prompt.temperature,
        "seed": prompt.seed,
    }
    completes = isinstance(config, LocalModel) or config.has_completions
    if prompt.continues_text and completes:
        shots = "".join(f"{question}\nAnswer: {answer}\n\n" for question, answer in prompt.shots)
        text = f"{prompt.system}\n\n{shots}{prompt.question}\nAnswer:"
        return {**sampling, "prompt": text, "stop": ["\n"]}
    messages = [{"role": "system", "content": prompt.system}]
    for question, answer in (*prompt.shots, (prompt.question, "")):
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    request: Request = {**sampling, "messages": messages[:-1]}
    if prompt.schema:
        schema = {"name": "answer", "schema": json.loads(prompt.schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    return request


def _connection(base_url: str, key: str, config: LocalModel | RemoteModel) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=base_url,
        api_key=key,
        timeout=config.timeout_seconds,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=isinstance(config, RemoteModel)),
    )


def _key(config: RemoteModel) -> str:
    if not config.api_key_variable:
        return "none"
    key = os.environ.get(config.api_key_variable)
    if not key:
        raise EndpointError(
            f"the environment variable {config.api_key_variable}, which should hold the key for "
            f"{config.base_url}, is not set. Set it and run the same command again."
        )
    return key
