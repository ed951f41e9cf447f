"""What an endpoint sent, as an answer: chat turns and running text alike."""

from pydantic import BaseModel, Field, ValidationError

from components.answers import Answer


class NoAnswerError(Exception):
    """Status 200, but what came is no completion."""


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    text: str | None = None
    message: _Message = _Message()


class _Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(BaseModel):
    """What both kinds of completion have in common. Whatever else a server says is passed over."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def read(payload: str) -> Answer:
    """The first choice and what it took. Raises NoAnswerError for anything else."""
    try:
        said = _Completion.model_validate_json(payload)
    except ValidationError as error:
        raise NoAnswerError(f"it sent no completion but {payload[:80]!r}.") from error
    text = said.choices[0].text or said.choices[0].message.content or ""
    usage = said.usage or _Usage()
    return Answer(text, usage.prompt_tokens, usage.completion_tokens)
