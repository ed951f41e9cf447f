"""Prompts to answers, from any OpenAI-compatible endpoint: the one home of the client.

    with llm.connect(config.language_model) as client:
        answers = client.ask(prompts)
        client.ledger.paid       tokens and money of what was asked
        client.ledger.kept       the same of what was on disk already, and cost nothing now

Prompts wait in one queue, and as many lanes as the endpoint allows take from it. Answers are kept
on disk (answers.py): a run that was killed asks only what is missing, and nothing that was answered
is asked again. A key is named in the config and read here alone.
"""

import os
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import openai

from components import completions, fetch, pacing
from components.accounts import Ledger
from components.answers import Answer, Answers, digest_of
from components.completions import NoAnswerError
from components.endpoints import LocalModel, RemoteModel
from components.pacing import Pace
from components.questions import Prompt, Request, opening, request_of, tokens_at_most
from components.smollm2 import serve_smollm2

__all__ = ["Client", "EndpointError", "Prompt", "connect"]

_FIRST_WAIT_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 60.0

Heard = Callable[[int], None]
Sleep = Callable[[float], None]


class EndpointError(RuntimeError):
    """A language model could not be asked. The message names it and says what to do."""


@contextmanager
def connect(config: LocalModel | RemoteModel, sleep: Sleep = time.sleep) -> Iterator["Client"]:
    """A client. A local model is served from the first question that has no answer yet."""
    with ExitStack() as opened:
        yield Client(
            config, lambda: _lanes(config, sleep, opened), Answers(fetch.cache_folder() / "llm")
        )


class Client:
    """Asks one model. Made by `connect`."""

    def __init__(
        self,
        config: LocalModel | RemoteModel,
        make_lanes: Callable[[], list["_Lane"]],
        answers: Answers,
    ) -> None:
        self.ledger = Ledger(config)
        self._config = config
        self._make_lanes = make_lanes
        self._lanes: list[_Lane] = []
        self._answers = answers

    def ask(self, prompts: Sequence[Prompt], heard: Heard = lambda n_answers: None) -> list[Answer]:
        """Answers in the order of the prompts. `heard` is told how many there are so far."""
        asked = [_Asked.of(prompt, self._config) for prompt in prompts]
        found: dict[str, Answer] = {}
        missing: dict[str, _Asked] = {}  # the same prompt twice is one question
        for each in asked:
            if each.digest in found or each.digest in missing:
                continue
            if (answer := self._answers.get(each.request)) is None:
                missing[each.digest] = each
            else:
                found[each.digest] = answer
                self.ledger.keep(answer)
        if missing:
            self._ask_all(list(missing.values()), found, heard)
        return [found[each.digest] for each in asked]

    def _ask_all(self, missing: list["_Asked"], found: dict[str, Answer], heard: Heard) -> None:
        self._lanes = self._lanes or self._make_lanes()
        waiting: queue.SimpleQueue[_Asked] = queue.SimpleQueue()
        for each in missing:
            waiting.put(each)
        stop = threading.Event()

        def work(lane: _Lane) -> None:
            while not stop.is_set():
                try:
                    each = waiting.get_nowait()
                except queue.Empty:
                    return
                found[each.digest] = self._answer(each, lane)
                heard(len(found))

        with ThreadPoolExecutor(len(self._lanes)) as pool:
            working = [pool.submit(work, lane) for lane in self._lanes]
            try:
                for lane in working:
                    lane.result()
            finally:  # a failure or Ctrl-C ends the other lanes after the answer they wait for
                stop.set()

    def _answer(self, asked: "_Asked", lane: "_Lane") -> Answer:
        """Ask, unless another process did since: it is paid for once."""
        with self._answers.claimed(asked.request):
            if (answer := self._answers.get(asked.request)) is not None:
                self.ledger.keep(answer)
                return answer
            answer = lane.answer(asked)
            self._answers.put(asked.request, answer)
            self.ledger.pay(answer)
            return answer


@dataclass(frozen=True)
class _Asked:
    """A prompt with its request and the digest that names it."""

    prompt: Prompt
    request: Request
    digest: str

    @staticmethod
    def of(prompt: Prompt, config: LocalModel | RemoteModel) -> "_Asked":
        request = request_of(prompt, config)
        return _Asked(prompt, request, digest_of(request))


@dataclass
class _Lane:
    """One request at a time, used by one thread; the pace is shared with the other lanes."""

    connection: openai.OpenAI
    config: LocalModel | RemoteModel
    pace: Pace
    sleep: Sleep
    jitter: random.Random
    opened: Prompt | None = field(default=None)
    """What a local worker has read before the question."""

    def answer(self, asked: _Asked) -> Answer:
        """The answer, after as many attempts as the config allows."""
        backoff_seconds = _FIRST_WAIT_SECONDS
        for attempt in range(1, self.config.max_attempts + 1):
            try:
                return self._once(asked)
            except (
                openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError,
                NoAnswerError,
            ) as error:  # fmt: skip
                if attempt == self.config.max_attempts:
                    raise EndpointError(self._gave_up(error)) from error
                if (pause_seconds := _pause_asked_for(error)) is None:
                    self.sleep(backoff_seconds * self.jitter.uniform(0.5, 1.5))
                    backoff_seconds = min(2 * backoff_seconds, _LONGEST_BACKOFF_SECONDS)
                else:
                    self._pause(pause_seconds, error)
            except openai.APIError as error:
                raise EndpointError(
                    f"{self.connection.base_url} refused a prompt for {self.config.name}: "
                    f"{error.message}. Look at name, api_key_variable and the endpoint's limits."
                ) from error
        raise AssertionError("max_attempts is at least 1")

    def _once(self, asked: _Asked) -> Answer:
        booked = tokens_at_most(asked.prompt)
        if (wait_seconds := self.pace.book(booked)) > 0:
            self.sleep(wait_seconds)
        if isinstance(self.config, LocalModel):
            self._open(asked.prompt)
        answer = self._send(asked.request)
        if used := answer.n_prompt_tokens + answer.n_completion_tokens:
            self.pace.give_back(booked - used)
        return answer

    def _open(self, prompt: Prompt) -> None:
        """A local worker reads what comes before the question by itself (smollm2.py says why)."""
        first = opening(prompt)
        request = request_of(first, self.config)
        self._send({**request, "cache_prompt": first == self.opened})
        self.opened = first

    def _send(self, request: Request) -> Answer:
        body: dict[str, Any] = dict(request)
        extra = {"cache_prompt": body.pop("cache_prompt")} if "cache_prompt" in body else None
        resource: Any = (
            self.connection.completions if "prompt" in body else self.connection.chat.completions
        )
        return completions.read(resource.with_raw_response.create(**body, extra_body=extra).text)

    def _pause(self, seconds: float, error: Exception) -> None:
        longest = self.config.longest_wait_seconds if isinstance(self.config, RemoteModel) else 0.0
        if seconds > longest:
            raise EndpointError(
                f"{self.connection.base_url} asks for a pause of {seconds:.0f} s, longer than "
                f"longest_wait_seconds ({longest:.0f}). What it answered so far is kept: run the "
                f"same command again after that, or raise longest_wait_seconds."
            ) from error
        self.pace.pause(seconds)

    def _gave_up(self, error: Exception) -> str:
        said = error.message if isinstance(error, openai.APIError) else str(error)
        return (
            f"{self.connection.base_url} gave no answer for {self.config.name} in "
            f"{self.config.max_attempts} attempts: {said} Is the endpoint up? What it "
            f"answered so far is kept: run the same command again and only the rest is asked."
        )


def _pause_asked_for(error: Exception) -> float | None:
    """Seconds the endpoint asks to be left alone, where it says so."""
    if not isinstance(error, openai.APIStatusError):
        return None
    return pacing.seconds_of(error.response.headers.get("retry-after", ""))


def _lanes(config: LocalModel | RemoteModel, sleep: Sleep, opened: ExitStack) -> list[_Lane]:
    if isinstance(config, RemoteModel):
        pace = Pace(config.requests_per_minute, config.tokens_per_minute)
        connection = opened.enter_context(_connection(config.base_url, _key(config), config))
        connections = [connection] * config.n_concurrent
    else:
        pace = Pace(None, None)
        urls = opened.enter_context(serve_smollm2(config.n_workers, config.n_context))
        connections = [opened.enter_context(_connection(url, "none", config)) for url in urls]
    # Processes that failed together must not come back together.
    return [
        _Lane(connection, config, pace, sleep, random.Random(f"{os.getpid()} {number}"))
        for number, connection in enumerate(connections)
    ]


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
