"""What a request may ask for, checked before it takes a place in the line."""

from components.explaining.requests import GenerateRequest
from components.serving.config import Limits
from components.serving.problems import Problem, RefusedError
from components.serving.schema import Asked, ExplainRequest, SteerRequest

_LISTED = ("top_concepts", "top_token_concepts", "top_sources")


def check(asked: Asked, limits: Limits) -> None:
    """Raise RefusedError, with the value, the limit and the way out."""
    generation = asked if isinstance(asked, GenerateRequest) else asked.request
    prefix = "" if isinstance(asked, GenerateRequest) else "request."
    _check_text(generation.prompt, f"{prefix}prompt")
    n_chars, n_ids = len(generation.prompt), len(generation.prompt_ids)
    if n_chars > limits.prompt_chars:
        raise _over(
            f"{prefix}prompt", f"the prompt has {n_chars} characters", limits.prompt_chars,
            "shorten it",
        )  # fmt: skip
    if n_ids > limits.prompt_chars:
        raise _over(
            f"{prefix}prompt_ids", f"the prompt has {n_ids} tokens", limits.prompt_chars,
            "shorten it",
        )  # fmt: skip
    n_new = generation.sampling.n_new
    if n_new > limits.new_tokens:
        raise _over(
            f"{prefix}sampling.n_new", f"n_new is {n_new} tokens", limits.new_tokens,
            "ask for fewer, and continue from the answer",
        )  # fmt: skip
    if isinstance(asked, SteerRequest) and len(asked.wishes) > limits.wishes:
        raise _over(
            "wishes", f"there are {len(asked.wishes)} wishes", limits.wishes, "leave some out"
        )
    if not isinstance(asked, GenerateRequest):
        _check_options(asked, limits)


def _check_text(prompt: str, field: str) -> None:
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        message = (
            f"the prompt has half of a surrogate pair at character {error.start}, "
            f"{prompt[error.start]!r}, which is no text; send both halves, or UTF-8"
        )
        raise RefusedError(422, Problem(error="invalid", message=message, field=field)) from error


def _check_options(asked: ExplainRequest | SteerRequest, limits: Limits) -> None:
    targets, passes = asked.options.input_targets, asked.options.evaluations
    if targets * passes > limits.input_passes:
        raise _over(
            "options.input_targets",
            f"{targets} input_targets × {passes} evaluations are {targets * passes} passes",
            limits.input_passes, "lower one of them",
        )  # fmt: skip
    most = dict.fromkeys(_LISTED, limits.listed) | {"draws": limits.draws}
    for name, limit in most.items():
        if (value := vars(asked.options)[name]) > limit:
            raise _over(f"options.{name}", f"{name} is {value}", limit, "lower it")


def _over(field: str, what: str, limit: int, way_out: str) -> RefusedError:
    message = f"{what}, and this server's limit is {limit}; {way_out}"
    return RefusedError(422, Problem(error="over_limit", message=message, field=field))
