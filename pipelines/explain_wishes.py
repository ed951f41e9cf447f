"""What `--amplify`, `--suppress` and `--replace` say: CONCEPT, CONCEPT=8, CONCEPT=OTHER=8."""

from collections.abc import Sequence

from components.explaining.requests import Action, Wish


def wishes_of(
    amplify: Sequence[str], suppress: Sequence[str], replace: Sequence[str]
) -> list[Wish]:
    """In that order. Raises ValueError for what is no wish, and where there is none at all."""
    wishes = [*(_wish(said, "amplify") for said in amplify),
              *(_wish(said, "suppress") for said in suppress),
              *(_replacement(said) for said in replace)]  # fmt: skip
    if not wishes:
        raise ValueError(
            "nothing is to change; name a concept with --amplify, --suppress or --replace"
        )
    return wishes


def _wish(said: str, action: Action) -> Wish:
    concept, strength = _strength(said)
    return Wish(concept=concept, action=action, strength_logits=strength)


def _replacement(said: str) -> Wish:
    both, strength = _strength(said)
    concept, between, other = both.partition("=")
    if not between:
        raise ValueError(
            f"--replace {said!r} names one concept; give the old and the new one as OLD=NEW"
        )
    return Wish(
        concept=concept.strip(), action="replace", strength_logits=strength,
        replacement=other.strip(),
    )  # fmt: skip


def _strength(said: str) -> tuple[str, float | None]:
    """A concept and the number behind its last "=", where there is one."""
    concept, between, number = said.rpartition("=")
    if not between:
        return said, None
    try:
        return concept, float(number)
    except ValueError:
        return said, None
