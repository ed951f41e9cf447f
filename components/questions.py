"""A prompt, and the request that an endpoint gets for it.

A request holds everything an answer depends on: the model, the text, the schema, the sampling. Its
digest is the name under which the answer is kept (answers.py).
"""

import json
import re
from dataclasses import dataclass

from components.endpoints import LocalModel, RemoteModel

Request = dict[str, object]

_MARK = re.compile(r"<(?=\s*/?\s*passage)", re.IGNORECASE)
_BYTES_PER_TOKEN = 3
"""Fewer than most tokenizers have, so that a rate is not exceeded before the count is known."""


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


def request_of(prompt: Prompt, config: LocalModel | RemoteModel) -> Request:
    """What the endpoint gets: a completion of running text where it can, else turns of a chat."""
    if isinstance(config, LocalModel):
        completes, takes_schema = True, True
        sampling: Request = {"max_tokens": prompt.max_tokens, "cache_prompt": True}
    else:
        completes, takes_schema = config.has_completions, config.obeys_schemas
        sampling = {config.limit_field: prompt.max_tokens}
    sampling |= {
        "model": config.name, "temperature": prompt.temperature, "seed": prompt.seed,
    }  # fmt: skip
    if prompt.continues_text and completes:
        shots = "".join(f"{question}\nAnswer: {answer}\n\n" for question, answer in prompt.shots)
        text = f"{prompt.system}\n\n{shots}{prompt.question}\nAnswer:"
        return {**sampling, "prompt": text, "stop": ["\n"]}
    system = prompt.system
    if prompt.schema and not takes_schema:
        system += f"\nAnswer with JSON of this schema and nothing else: {prompt.schema}"
    messages = [{"role": "system", "content": system}]
    for question, answer in (*prompt.shots, (prompt.question, "")):
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    request: Request = {**sampling, "messages": messages[:-1]}
    if prompt.schema and takes_schema:
        schema = {"name": "answer", "schema": json.loads(prompt.schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    return request


def as_data(passage: str) -> str:
    """A passage between marks that it cannot hold itself: data, whatever it tells the model."""
    return f"Passage: <passage>{_MARK.sub('‹', passage)}</passage>"


def opening(prompt: Prompt) -> Prompt:
    """The prompt up to its question: what it shares with others of the same examples."""
    return Prompt(prompt.system, prompt.shots, question="", max_tokens=1,
                  continues_text=prompt.continues_text)  # fmt: skip


def tokens_at_most(prompt: Prompt) -> int:
    """About how many tokens prompt and answer have, rather too many than too few."""
    texts = [
        prompt.system,
        prompt.question,
        prompt.schema,
        *(t for shot in prompt.shots for t in shot),
    ]
    return sum(len(text.encode()) for text in texts) // _BYTES_PER_TOKEN + prompt.max_tokens
