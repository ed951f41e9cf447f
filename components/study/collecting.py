"""Read back what raters sent: one JSON file a rater, matched with the key (paper app. D).

Anything that does not belong is refused with the file and the item: another study's answers, a
second file of one rater, an id that is not on the rater's page, a value off the scale. Items
without an answer are refused too, or counted where the config allows it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from components import contracts
from components.study.config import HIGHEST, LOWEST, CollectConfig, answers_digest
from components.study.sheets import WORDS
from model.config import Config

Row = Mapping[str, object]


class AnswersError(ValueError):
    """A file of answers cannot be used. The message names the file, the item and the way out."""


class Given(Config):
    """One answer of a file."""

    item_id: str
    rating: int = Field(strict=True)
    name: str = ""


class Returned(Config):
    """One file that came back, as the questionnaire saves it."""

    study_id: str
    rater_id: str
    phase: int
    answers: tuple[Given, ...]


@dataclass(frozen=True)
class _Key:
    """What was asked: the study's rows by rater and item."""

    study_id: str
    by_rater: Mapping[str, Mapping[str, Sequence[Row]]]


def collect(study: Path, answers: Path, config: CollectConfig) -> int:
    """Write a row for every rating, in the order of the key. Returns the number of rows."""
    facts = contracts.json_file(study, "study.json")
    key = _key(study, str(facts["study_id"]))
    folder = Path(config.folder)
    paths = _files(folder, config)
    found: dict[str, dict[str, Given]] = {}
    origin: dict[str, Path] = {}
    for path in paths:
        returned = _returned(path)
        _check_whose(path, returned, key, origin)
        origin[returned.rater_id] = path
        asked = key.by_rater[returned.rater_id]
        found[returned.rater_id] = _checked(path, returned, asked, config)
    missing = {
        rater: [item for item in asked if item not in found.get(rater, {})]
        for rater, asked in key.by_rater.items()
    }
    if not config.allow_missing:
        _refuse_missing(missing, origin, folder)
    rows = [
        _row(key_row, found[rater][item])
        for rater, asked in key.by_rater.items()
        for item, key_rows in asked.items()
        if item in found.get(rater, {})
        for key_row in key_rows
    ]
    said = {
        **{name: facts[name] for name in ("study_id", "phase", "library_digest")},
        "follows": facts.get("follows", ""),
        "n_raters_asked": len(key.by_rater), "n_raters": len(found),
        "n_items_asked": sum(map(len, key.by_rater.values())),
        "n_items_answered": sum(map(len, found.values())),
        "missing_by_rater": {rater: len(items) for rater, items in missing.items() if items},
        "n_without_name": sum(row["kind"] == WORDS and not row["name"] for row in rows),
    }  # fmt: skip
    (answers / "collected.json").write_text(json.dumps(said, indent=1) + "\n")
    return contracts.write(rows, answers, contracts.ANSWERS)


def _key(study: Path, study_id: str) -> _Key:
    by_rater: dict[str, dict[str, list[Row]]] = {}
    for row in contracts.read(study, contracts.STUDY).to_pylist():
        by_rater.setdefault(row["rater_id"], {}).setdefault(row["item_id"], []).append(row)
    return _Key(study_id, by_rater)


def _files(folder: Path, config: CollectConfig) -> list[Path]:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise AnswersError(
            f"{folder} holds no .json file; put the files there that raters saved from their pages"
        )
    if answers_digest(folder) != config.digest:
        raise AnswersError(
            f"the files of {folder} changed since they were counted; collect them again"
        )
    return paths


def _returned(path: Path) -> Returned:
    try:
        return Returned.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise AnswersError(
            f"{path} is no file of answers: {where}{_item_at(path, first['loc'])} is "
            f"{first.get('input')!r:.60}: {first['msg']}. Ask the rater to save the page's answers "
            f"again; do not edit the file"
        ) from None


def _item_at(path: Path, where: tuple[int | str, ...]) -> str:
    """The id of the answer that could not be read, where the file is whole enough to tell."""
    if len(where) < 2 or where[0] != "answers":
        return ""
    item = json.loads(path.read_bytes())["answers"][where[1]]
    return f" (item {item.get('item_id')})" if isinstance(item, dict) else ""


def _check_whose(path: Path, returned: Returned, key: _Key, origin: Mapping[str, Path]) -> None:
    if returned.study_id != key.study_id:
        raise AnswersError(
            f"{path} answers study {returned.study_id}, this is study {key.study_id}; keep the "
            f"files of each study and phase in a folder of their own"
        )
    if returned.rater_id not in key.by_rater:
        raise AnswersError(
            f"{path} is of rater {returned.rater_id!r}, who is not in study {key.study_id}: it has "
            f"{', '.join(key.by_rater)}"
        )
    if returned.rater_id in origin:
        raise AnswersError(
            f"{path} and {origin[returned.rater_id]} are both of rater {returned.rater_id} in "
            f"study {key.study_id}; keep the one that counts"
        )


def _checked(
    path: Path, returned: Returned, asked: Mapping[str, Sequence[Row]], config: CollectConfig
) -> dict[str, Given]:
    """The answers of one file by item. Raises AnswersError at the first that cannot count."""
    found: dict[str, Given] = {}
    for given in returned.answers:
        where = f"{path}, item {given.item_id}:"
        if given.item_id not in asked:
            raise AnswersError(
                f"{where} not on the page of rater {returned.rater_id}; did two raters swap pages?"
            )
        if given.item_id in found:
            raise AnswersError(f"{where} answered twice; ask the rater to save the page again")
        if not LOWEST <= given.rating <= HIGHEST:
            raise AnswersError(
                f"{where} the rating is {given.rating}, the scale goes from {LOWEST} to {HIGHEST}"
            )
        if len(given.name) > config.max_name_chars:
            raise AnswersError(
                f"{where} the name has {len(given.name)} characters, {config.max_name_chars} at "
                f"most; raise max_name_chars if it is what the rater wrote"
            )
        found[given.item_id] = given
    return found


def _refuse_missing(
    missing: Mapping[str, Sequence[str]], origin: Mapping[str, Path], folder: Path
) -> None:
    absent = [rater for rater, items in missing.items() if items and rater not in origin]
    if absent:
        raise AnswersError(
            f"{folder} has no file of {', '.join(absent)}; wait for them, or allow missing answers "
            f"(--allow-missing)"
        )
    for rater, items in missing.items():
        if items:
            raise AnswersError(
                f"{origin[rater]} lacks {len(items)} answers, the first of item {items[0]}; ask "
                f"rater {rater} to finish, or allow missing answers (--allow-missing)"
            )


def _row(key_row: Row, given: Given) -> dict[str, object]:
    """A rating with what it is of. In phase 1 the name is the rater's, in phase 2 the key's."""
    same = {name: key_row[name] for name in ("item_id", "rater_id", "concept_id", "branch", "kind")}
    own = " ".join(given.name.split())
    return {
        **same, "rating": given.rating,
        "name": own if key_row["kind"] == WORDS else key_row["name"],
    }  # fmt: skip
