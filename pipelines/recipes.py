"""Recipes by name, and changes to single numbers of one.

debug    40 documents written for the tests, two layers; no download, no language model
demo     real text of five domains, a language model that tags it, a network of a few million
         parameters; a laptop's half hour
large_library   `demo` with a library of 400 concepts or more
small    125 million parameters on one accelerator
one_b    the scale of the paper's ablations, on a node of eight
steerling_8b    the paper's own network, data and schedules

The last three begin with `clearstory plan NAME`: they want more than a laptop.
"""

import difflib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from pipelines.debug import debug
from pipelines.demo import demo
from pipelines.large_library import large_library
from pipelines.one_b import one_b
from pipelines.recipe import Recipe
from pipelines.small import small
from pipelines.steerling_8b import steerling_8b

RECIPES: dict[str, Callable[[], Recipe]] = {
    "debug": debug,
    "demo": demo,
    "large_library": large_library,
    "small": small,
    "one_b": one_b,
    "steerling_8b": steerling_8b,
}
"""Every recipe by name."""


def named(name: str) -> Recipe:
    """The recipe of this name. Raises ValueError with the nearest name."""
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r}. {nearest(name, sorted(RECIPES))}")
    return RECIPES[name]()


def changed(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with some of its numbers changed, each given as KEY=VALUE with dots between."""
    values = recipe.model_dump(mode="json")
    known = _keys(values)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"{setting!r} is not KEY=VALUE, for example training.training.seed=1")
        if key not in known:
            raise ValueError(f"There is no {key} in the recipe. {nearest(key, sorted(known))}")
        place, last = known[key]
        place[last] = _parsed(text)
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{', '.join(settings)} does not fit the recipe: {error}") from error


def annealed(recipe: Recipe, savepoint: Path, n_steps: int) -> Recipe:
    """The recipe whose training goes on from a savepoint and only decays, for `n_steps` steps.

    Raises ValueError where the folder is no savepoint, or one of the warm-up.
    """
    from components import savepoints  # brings torch along, and planning needs none

    found = savepoints.opened(savepoint.resolve())
    training = recipe.training.training.annealed(str(found.folder), found.step, n_steps)
    stage = recipe.training.model_copy(update={"training": training})
    return recipe.model_copy(update={"training": stage})


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for a name that is not known."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    shown = close or list(known)[:10]
    return f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(shown)}."


def _keys(values: dict[str, object], prefix: str = "") -> dict[str, tuple[dict[str, object], str]]:
    """Every dotted key, with the dictionary its value lies in and its name there."""
    found: dict[str, tuple[dict[str, object], str]] = {}
    for name, value in values.items():
        found[f"{prefix}{name}"] = (values, name)
        if isinstance(value, dict):
            found |= _keys(value, f"{prefix}{name}.")
    return found


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
