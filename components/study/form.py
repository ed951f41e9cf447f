"""One rater's questionnaire: a page that opens from a file and asks nothing of any network.

Answers are kept in the browser while they are given and saved as a JSON file at the end:

    {"study_id", "rater_id", "phase", "answers": [{"item_id", "rating", "name"}]}

The page holds words, names and opaque ids, and nothing that tells which name came from where.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from components.page_style import PALETTE
from components.pages import Markup
from components.study.form_script import FORM_STYLE, SCRIPT

INTRODUCTIONS = {
    1: "Each list holds words that set some texts apart from others. Say in a few words what they "
    "have in common, then how recognisable a single concept is in the list. There is no right "
    "answer; leave the name empty if none comes to mind.",
    2: "Each list holds words that set some texts apart from others. Below it stand names for "
    "what the words have in common. Say of each how well it fits the list.",
}
QUESTIONS = {1: "How recognisable is a single concept?", 2: "How well does each name fit?"}
ENDS = {
    1: ("not at all", "unmistakable"),
    2: ("does not fit", "fits perfectly"),
}
_KEYS = {
    1: "Enter: from the name to the scale, then to the next list · 1–5: rate · ↑ back to the name "
    "· Shift+Enter: the list before",
    2: "1–5: rate, and on to the next name · ↑ ↓: choose a name · Enter: next list · Shift+Enter: "
    "the list before",
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class Shown:
    """One thing to rate, under the id its rating comes back with; no name in phase 1."""

    item_id: str
    name: str


@dataclass(frozen=True)
class Asked:
    """One list of words with what is to be rated about it."""

    words: Sequence[str]
    shown: Sequence[Shown]


@dataclass(frozen=True)
class Sheet:
    """Everything on one rater's page, in its order."""

    study_id: str
    rater_id: str
    phase: int
    asked: Sequence[Asked]


def questionnaire(sheet: Sheet) -> str:
    """The page. Names come from raters and models: they travel as JSON that no tag can leave."""
    wording = {"question": QUESTIONS[sheet.phase], "ends": ENDS[sheet.phase]}
    return str(
        Markup(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            '<meta http-equiv="Content-Security-Policy" content="{policy}">'
            "<title>Study {study}, rater {rater}</title><style>{css}</style></head><body>"
            "<header><h1>What do these words share?</h1><p>{introduction}</p></header>"
            '<div class="progress"><progress id="progress" max="{n}" value="0" '
            'aria-label="lists answered"></progress>'
            '<output id="where" aria-live="polite"></output></div>'
            '<main id="stage"><noscript>This questionnaire needs JavaScript.</noscript></main>'
            '<p id="said" role="status"></p>'
            '<nav><button id="back" type="button">Back</button>'
            '<button id="next" type="button" class="main">Next</button>'
            '<button id="save" type="button">Save answers to a file</button></nav>'
            '<p class="keys">{keys}</p>'
            '<script type="application/json" id="study">{data}</script>'
            "<script>{script}</script></body></html>\n"
        ).format(
            policy=_POLICY,
            study=sheet.study_id,
            rater=sheet.rater_id,
            css=Markup(PALETTE + FORM_STYLE),
            introduction=INTRODUCTIONS[sheet.phase],
            n=len(sheet.asked),
            keys=_KEYS[sheet.phase],
            data=Markup(embedded(asdict(sheet) | wording)),
            script=Markup(SCRIPT),
        )
    )


def embedded(data: object) -> str:
    """JSON as it may stand inside a script element: no `<` can end it or begin another."""
    return json.dumps(data).replace("<", "\\u003c")
