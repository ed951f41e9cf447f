"""Pages stand alone, and whatever a prompt, a corpus or a library holds reaches them as text."""

import re

import pytest

from components.explaining.explanation import explain
from components.explaining.page import explanation_page
from components.explaining.schema import ExplainOptions, GenerateRequest, Wish
from components.explaining.steered import steer
from components.explaining.steered_page import steered_page
from model.sampling_config import SamplingConfig

HOSTILE = "</style><script>alert(1)</script><img src=x onerror='alert(2)'>"
REQUEST = GenerateRequest(prompt="rain " + HOSTILE[:20], sampling=SamplingConfig(n_new=6))


@pytest.fixture(scope="module")
def found(opened):
    return explain(opened, REQUEST, ExplainOptions(input_targets=2, top_sources=2, draws=10))


@pytest.fixture(scope="module")
def both(opened):
    return steer(
        opened, REQUEST, [Wish(concept="bread", action="amplify", strength_logits=20.0)],
        ExplainOptions(input_targets=0, draws=10),
    )  # fmt: skip


def poisoned(document):
    """The same document with every text in it hostile, by way of its JSON."""
    keys = "|".join(("text", "name", "title", "source", "licence", "domain", "doc_id", "token",
                     "before", "after", "prompt", "claims"))  # fmt: skip
    told = re.sub(
        rf'"({keys})":"(?:[^"\\]|\\.)*"', rf'"\1":"{HOSTILE}"', document.model_dump_json()
    )
    return type(document).model_validate_json(told)


def test_hostile_text_is_shown_and_never_obeyed(found, both):
    for page in (explanation_page(poisoned(found)), steered_page(poisoned(both))):
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert page.count("</style>") == 1


def test_a_page_asks_for_nothing_from_anywhere(found, both):
    for page in (explanation_page(found), steered_page(both)):
        assert not re.search(r"(?:src|href)=\"(?!#)", page)
        assert "@import" not in page
        assert "url(" not in page


def test_every_source_is_shown_with_its_licence_and_place(found):
    page = explanation_page(found)
    source = found.chunks[0].sources[0]
    assert f"characters {source.start_char}–{source.end_char}" in page
    assert page.count("<h4>") == sum(len(chunk.sources) for chunk in found.chunks)
    assert "CC0-1.0" in page


def test_no_sources_are_said_to_be_none_and_why(found):
    chunks = tuple(chunk.model_copy(update={"sources": ()}) for chunk in found.chunks)
    page = explanation_page(found.model_copy(update={"chunks": chunks}))
    assert "this chunk has no text of its own" in page
    page = explanation_page(found.model_copy(update={"chunks": chunks, "index": None}))
    assert "No index was opened" in page


def test_of_a_long_text_the_page_shades_the_end_and_says_what_is_left_out(found):
    (chunk, *_) = found.chunks
    longer = found.generation.model_copy(update={"prompt_tokens": (" x",) * 400})
    far = chunk.inputs.shares[0].model_copy(update={"position": 0, "signed_share": 0.25})
    inputs = chunk.inputs.model_copy(update={"shares": (far,)})
    moved = chunk.model_copy(update={"end_position": 406, "inputs": inputs})
    page = explanation_page(found.model_copy(update={"generation": longer, "chunks": (moved,)}))
    assert "The 166 tokens before these carry 25 %." in page


def test_the_steered_page_strikes_what_is_gone_and_marks_what_came(both):
    page = steered_page(both)
    assert page.count("<del>") == sum(
        edit.kind != "same" and bool(edit.before) for edit in both.edits
    )
    assert page.count("<ins>") == sum(
        edit.kind != "same" and bool(edit.after) for edit in both.edits
    )
    assert "amplified <b>bread</b> · 20 logits, given" in page
