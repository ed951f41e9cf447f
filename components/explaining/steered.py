"""Write a text again with concepts changed, and say what that did and what it cost (paper §6.2).

Both texts begin with the same prompt, settings and seed. Effects and costs are the unsteered
network's reading of what stands there, not of the states that steering pushed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from components.explaining.explanation import explained
from components.explaining.opened import Opened
from components.explaining.reading import TextReading, read
from components.explaining.requests import Action, ExplainOptions, GenerateRequest, Wish
from components.explaining.schema import (
    ConceptEffect,
    ConceptFound,
    Generation,
    Steered,
    StrengthFrom,
    TokenEdit,
)
from components.explaining.writing import Heard, deaf, text_of, wanted, write
from model.directions import ConceptRef
from model.language_model import LanguageModel
from model.steering import Change, Steering, steering
from model.steering_config import InjectionConfig

DEFAULT_LOGITS = 8.0
"""Where nothing was calibrated: what steering is trained and measured at."""

_AMPLIFY, _SUPPRESS = InjectionConfig(), InjectionConfig(after=0.5, layers="onward")
"""Likewise, and as the steering stage does it."""

_EDITS: dict[str, Literal["same", "changed", "removed", "added"]] = {
    "equal": "same", "replace": "changed", "delete": "removed", "insert": "added",
}  # fmt: skip
_SOURCES: dict[str, StrengthFrom] = {"own": "calibrated", "common": "common"}


@dataclass(frozen=True)
class _Granted:
    """A wish whose concepts were found."""

    wish: Wish
    concepts: tuple[ConceptFound, ...]
    instead: tuple[ConceptFound, ...]
    change: Change
    strength_from: StrengthFrom
    n_texts: int

    @property
    def touched(self) -> list[tuple[ConceptFound, Action]]:
        """Every concept with what is done to it."""
        raised: list[tuple[ConceptFound, Action]] = [(one, "amplify") for one in self.instead]
        lowered: Action = "amplify" if self.wish.action == "amplify" else "suppress"
        return [(one, lowered) for one in self.concepts] + raised


def steer(
    opened: Opened, request: GenerateRequest, wishes: Sequence[Wish], options: ExplainOptions,
    heard: Heard = deaf,
) -> Steered:  # fmt: skip
    """Both texts, what changed, what it cost. `heard` is told the steered text.

    Raises ConceptError for a name that cannot be told, ValueError for other bad input, and
    AbandonedError where `heard` says that nobody waits.
    """
    if not wishes:
        raise ValueError("nothing is to change; name a concept to amplify, suppress or replace")
    granted = [_granted(opened, wish) for wish in wishes]
    _refuse_twice(granted)
    how = _steering(opened.lm, granted)
    (after,) = write(opened, [request], heard, steering=how)
    wanted(heard, after.generation.text)
    (before,) = write(opened, [request])
    seed = request.sampling.seed
    read_before, read_after = read(opened, before.trace, seed), read(opened, after.trace, seed)
    edits = _edits(opened, before.generation, after.generation)
    return Steered(
        wishes=tuple(wishes),
        before=explained(opened, before, options),
        after=explained(opened, after, options, heard),
        edits=edits,
        changed_tokens_share=_changed_share(edits),
        effects=tuple(
            _effect(one, concept, action, read_before, read_after)
            for one in granted
            for concept, action in one.touched
        ),
        quality_before=read_before.quality,
        quality_after=read_after.quality,
        notes=_notes(granted, before.generation, after.generation),
    )


def _refuse_twice(granted: Sequence[_Granted]) -> None:
    """Raise ValueError where one concept is to change in two ways."""
    named = [concept.name for one in granted for concept in (*one.concepts, *one.instead)]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise ValueError(
            f"{twice[0]} is named {named.count(twice[0])} times; ask for one change of each concept"
        )


def _steering(lm: LanguageModel, granted: Sequence[_Granted]) -> Steering:
    for one in granted:
        try:
            steering(lm, [[one.change]])
        except ValueError as error:
            raise ValueError(f"{one.wish.concept}: {error}") from error
    return steering(lm, [[one.change for one in granted]])


def _granted(opened: Opened, wish: Wish) -> _Granted:
    concepts = opened.vocabulary.group(wish.concept)
    instead = opened.vocabulary.group(wish.replacement) if wish.replacement else ()
    refs, instead_refs = _refs(concepts), _refs(instead)
    given, calibration = wish.strength_logits, opened.calibration
    if calibration is None:
        strength = DEFAULT_LOGITS if given is None else given
        where = _SUPPRESS if wish.action == "suppress" else _AMPLIFY
        layers = where.at(opened.lm.config.backbone.n_layers)
        change = Change(refs, strength, wish.action, instead_refs, layers=layers)
        source: StrengthFrom = "default" if given is None else "given"
        return _Granted(wish, concepts, instead, change, source, 0)
    change = calibration.change(refs, wish.action, strength=given, instead=instead_refs)
    if given is not None:
        return _Granted(wish, concepts, instead, change, "given", 0)
    found = calibration.strength(instead_refs or refs, wish.action)
    return _Granted(wish, concepts, instead, change, _SOURCES[found.source], found.n)


def _refs(concepts: Sequence[ConceptFound]) -> tuple[ConceptRef, ...]:
    return tuple(ConceptRef(one.kind, one.concept_id) for one in concepts)


def _effect(
    granted: _Granted, concept: ConceptFound, action: Action, before: TextReading,
    after: TextReading,
) -> ConceptEffect:  # fmt: skip
    at = (concept.kind, concept.concept_id)
    return ConceptEffect(
        concept=concept,
        action=action,
        strength_logits=granted.change.strength,
        strength_from=granted.strength_from,
        strength_n_texts=granted.n_texts,
        presence_before=before.presence(*at),
        presence_after=after.presence(*at),
        signed_share_before=before.account.signed_share(*at),
        signed_share_after=after.account.signed_share(*at),
    )


def _edits(opened: Opened, before: Generation, after: Generation) -> tuple[TokenEdit, ...]:
    """The shortest way from one text to the other, token by token."""
    first = [token.token_id for token in before.tokens]
    second = [token.token_id for token in after.tokens]
    return tuple(
        TokenEdit(
            kind=_EDITS[kind],
            before=text_of(opened, first[a:b]), after=text_of(opened, second[c:d]),
            n_before_tokens=b - a, n_after_tokens=d - c,
        )
        for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    )  # fmt: skip


def _changed_share(edits: Sequence[TokenEdit]) -> float:
    changed = [edit for edit in edits if edit.kind != "same"]
    return _n_tokens(changed) / max(1, _n_tokens(edits))


def _n_tokens(edits: Sequence[TokenEdit]) -> int:
    return sum(edit.n_before_tokens + edit.n_after_tokens for edit in edits)


def _notes(granted: Sequence[_Granted], before: Generation, after: Generation) -> tuple[str, ...]:
    notes = []
    if any(one.strength_from == "default" for one in granted):
        notes.append(
            f"no strength was calibrated for this checkpoint, so {DEFAULT_LOGITS:g} logits were "
            f"taken; a calibration says what suits each concept"
        )
    if [token.token_id for token in before.tokens] == [token.token_id for token in after.tokens]:
        notes.append("the text stayed as it was; a greater strength may change it")
    return tuple(notes)
