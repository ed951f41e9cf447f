"""Prompts are openings in turn over the domains, or chunks about a concept, of the length asked."""

from pathlib import Path

import pytest

from components import prompts
from components.tokens import TokenStream
from tests.components.explained_run import write_run


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> TokenStream:
    return TokenStream(write_run(tmp_path_factory.mktemp("run")).tokens)


def test_openings_take_domains_in_turn_and_begin_held_out_documents(stream: TokenStream) -> None:
    found = prompts.openings(stream, [5, 7, 6, 5], "test", seed=1)
    assert [len(prompt.ids) for prompt in found] == [5, 7, 6, 5]
    assert [prompt.domain for prompt in found] == ["letters", "notes", "letters", "notes"]
    assert len({prompt.doc_id for prompt in found}) == 4
    for prompt in found:
        assert prompt.split == "test"
        assert prompt.ids[0] == stream.specials.bos_id


def test_no_prompt_runs_over_the_end_of_its_chunk(stream: TokenStream) -> None:
    for prompt in prompts.openings(stream, [12] * 10, "test", seed=1):
        assert stream.specials.end_of_chunk_id not in prompt.ids
    assert prompts.openings(stream, [500], "test", seed=1) == []


def test_prompts_about_a_concept_begin_chunks_that_carry_it(stream: TokenStream) -> None:
    found = prompts.about(stream, 2, [6, 6, 6], ("test", "valid", "train"), seed=1)
    assert len(found) == 3
    labelled = {
        tuple(stream.span_tokens(row)[:6].tolist())
        for row in range(len(stream.spans))
        if 2 in stream.spans.concepts_NM[row]
    }
    assert {prompt.ids for prompt in found} <= labelled


def test_training_chunks_serve_only_where_held_out_ones_are_used_up(stream: TokenStream) -> None:
    found = prompts.about(stream, 0, [6] * 12, ("test", "valid", "train"), seed=1)
    splits = [prompt.split for prompt in found]
    order = ["test", "valid", "train"]
    assert splits == sorted(splits, key=order.index)
    assert splits[-1] == "train"


def test_the_same_seed_takes_the_same_prompts(stream: TokenStream, tmp_path: Path) -> None:
    again = TokenStream(write_run(tmp_path / "again").tokens)
    assert prompts.openings(stream, [5] * 4, "test", 3) == prompts.openings(
        again, [5] * 4, "test", 3
    )
    other = prompts.openings(stream, [5] * 4, "test", 4)
    assert prompts.openings(stream, [5] * 4, "test", 3) != other
