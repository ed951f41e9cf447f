"""`config.json` of the released format: two forms of the same settings.

    flat     every key at the top; `concept_block_size` is how much of the concept axis is held at
             once (the files of the hub)
    nested   concept settings under `concept`, where `block_size` means that (the converter's)

A file may hold both; they must agree. `render` writes both. No torch here.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from model.released_config import FormatError, ReleasedConfig

CONCEPT_KEYS = (
    "n_concepts", "n_unknown_concepts", "max_concepts", "concept_dim", "use_attention_known",
    "use_attention_unknown", "topk_known", "topk_known_features", "use_unknown",
    "factorize_unknown", "factorize_rank", "unknown_topk", "use_epsilon_correction",
    "concept_block_size", "pad_multiple", "topk_on_logits", "store_unknown_weights",
    "apply_topk_to_unknown", "inject_layer", "inject_alpha",
)  # fmt: skip
"""What the nested form keeps under `concept`, by the names of the flat form."""

CHAT_KEYS = {"start_header_id", "end_header_id", "eot_id"}
"""Only the instruct vocabulary has them."""

ABOUT_FILES = (
    "model_type", "architectures", "auto_map", "transformers_version", "torch_dtype", "dtype",
    "_name_or_path", "library_digest",
)  # fmt: skip
"""Keys that say nothing about the network."""


def parse(text: str) -> ReleasedConfig:
    """Read either form. FormatError names each key that is missing, foreign or not followed."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"it is not JSON ({error}); write it again") from error
    if not isinstance(found, dict):
        raise FormatError(f"it holds a {type(found).__name__}, not an object of settings")
    keys = _flat({key: value for key, value in found.items() if key not in ABOUT_FILES})
    keys.setdefault("interpretable", "n_concepts" in keys)
    try:
        return ReleasedConfig.model_validate(keys)
    except ValidationError as error:
        raise FormatError("; ".join(_said(one) for one in error.errors())) from error


def render(settings: ReleasedConfig, *, dtype: str, library_digest: str | None) -> str:
    """Both forms in one file. The digest, at the top, is one key that the package leaves alone."""
    values = settings.model_dump(exclude=set() if settings.instruct else CHAT_KEYS)
    concept = {key: values.pop(key) for key in CONCEPT_KEYS if key in values}
    written: dict[str, Any] = {
        "model_type": "steerling",
        "architectures": ["SteerlingForCausalLM"],
        **values,
        "torch_dtype": dtype,
    }
    if library_digest is not None:
        written["library_digest"] = library_digest
    if settings.interpretable:
        nested = {_nested_name(key): value for key, value in concept.items()}
        written |= {**concept, "concept": nested}
    return json.dumps(written, indent=1) + "\n"


def _flat(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The flat form of either; nested settings must not contradict flat ones."""
    flat = dict(keys)
    nested = flat.pop("concept", None)
    if nested is None:
        return flat
    if not isinstance(nested, dict):
        raise FormatError(f"concept is {nested!r}, not an object of settings")
    flat_names = {_nested_name(key): key for key in CONCEPT_KEYS}
    for given, value in nested.items():
        if given not in flat_names:
            raise FormatError(f"concept.{given} is no setting of the format; remove it")
        key = flat_names[given]
        if key in flat and flat[key] != value:
            raise FormatError(
                f"concept.{given} is {value!r} but {key} is {flat[key]!r}; they are one setting, "
                f"so correct the wrong one"
            )
        flat[key] = value
    return flat


def _nested_name(key: str) -> str:
    return "block_size" if key == "concept_block_size" else key


def _said(error: Mapping[str, Any]) -> str:
    """One of pydantic's findings as a clause."""
    key = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"{key} is missing; add it"
        case "extra_forbidden":
            return f"{key} is no setting of the format; remove it if it changes nothing"
        case "value_error":
            return str(error["ctx"]["error"])
    return f"{key} is {error['input']!r}: {error['msg']}"
