"""The key of a stage: everything that may change its bytes, and nothing else (platform, A.1).

Config, the digests of its inputs, the source of the modules it reaches, and the image. Times,
hosts, run ids and paths are not in it. The parts stay readable, so that a surprise can be read.
"""

import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from components import images
from model.config import Config

FIRST_PARTY = ("model", "components")
_OUTSIDE_THE_METHOD = (
    "components.artifacts", "components.runner", "components.store", "components.tracking",
    "components.settings", "components.keys", "components.records", "components.images",
    "components.provenance", "components.scratch", "components.lifeline",
)  # fmt: skip
"""What wraps stages cannot change what they write: a change here reuses every artifact."""


_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>[\w.]+)[ \t]+)?import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)",
    re.MULTILINE,
)

_NAMED = re.compile(r"[\"']((?:model|components)(?:\.\w+)+)[\"']")


class StageKey(Config):
    """The parts of one key, each readable."""

    stage: str
    config: dict[str, object]
    how: tuple[str, ...] = ()
    """Dotted names of the config that say how the stage computes and not what (`Config.HOW`)."""

    inputs: dict[str, list[str]]
    """Digests by input name; more than one where the input is a list."""

    outputs: dict[str, str]
    """Contract by output name."""

    code: dict[str, str]
    """SHA-256 of each module the stage reaches."""

    image: str

    @property
    def digest(self) -> str:
        """The key itself, 64 hexadecimal characters."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def lineage(self) -> str:
        """The key of what is computed, however it is: 64 hexadecimal characters."""
        whole = self.model_dump(mode="json")
        flat = flattened(whole.pop("config"))
        how = tuple(f"{name}." for name in self.how)
        whole["config"] = {
            name: text
            for name, text in flat.items()
            if name not in self.how and not name.startswith(how)
        }
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def differences(self, other: "StageKey") -> list[str]:
        """Which parts differ from another key of the same stage, in words."""
        here, there = (
            flattened(self.model_dump(mode="json")),
            flattened(other.model_dump(mode="json")),
        )
        return [
            f"{name}: {there.get(name, 'absent')} -> {here.get(name, 'absent')}"
            for name in sorted(here.keys() | there.keys())
            if here.get(name) != there.get(name)
        ]


def key_of(
    stage: str,
    module: str,
    config: Config,
    inputs: Mapping[str, list[str]],
    outputs: Mapping[str, str],
) -> StageKey:
    """The key of `stage`, whose function lives in `module`."""
    return StageKey(
        stage=stage,
        config=config.model_dump(mode="json"),
        how=config.HOW,
        inputs={name: list(digests) for name, digests in inputs.items()},
        outputs=dict(outputs),
        code=code_of(module),
        image=images.CPU,
    )


@cache
def code_of(module: str) -> dict[str, str]:
    """SHA-256 of `module` and of every first-party module it imports, directly or not."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if path is None or name in found or name in _OUTSIDE_THE_METHOD:
            continue
        source = path.read_text()
        found[name] = hashlib.sha256(source.encode()).hexdigest()
        waiting += _imports(name, source)
    return dict(sorted(found.items()))


def _imports(module: str, source: str) -> list[str]:
    """First-party names that a source reaches, by its text: parsing would cost ten times more.

    A module named in a string counts too: ranks are started by name.
    """
    names = _NAMED.findall(source)
    for statement in _IMPORT.finditer(source):
        base, imported = statement["base"], statement["names"]
        if base:
            listed = [
                word.split()[0] for word in imported.strip("() \n").split(",") if word.strip()
            ]
            names += [base, *(f"{base}.{name}" for name in listed)]
        else:
            names += [word.split()[0] for word in imported.split(",") if word.strip()]
    return [name for name in names if name.split(".")[0] in FIRST_PARTY and name != module]


def _source(name: str) -> Path | None:
    """The file of a module; None for names that are functions or classes inside one."""
    root, *rest = name.split(".")
    package = importlib.util.find_spec(root)
    if package is None or not package.submodule_search_locations:
        return None
    base = Path(package.submodule_search_locations[0]).joinpath(*rest)
    for candidate in (base / "__init__.py", base.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def flattened(value: object, prefix: str = "") -> dict[str, str]:
    """Nested dictionaries as one, keys joined by dots, values as text."""
    if isinstance(value, Mapping):
        return {
            name: text
            for key, inner in value.items()
            for name, text in flattened(inner, f"{prefix}.{key}" if prefix else str(key)).items()
        }
    return {prefix: str(value)}
