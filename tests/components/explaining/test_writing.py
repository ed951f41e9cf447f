"""Texts written together are those written alone, and prompts are what they look like."""

from itertools import pairwise

import pytest

from components.explaining.schema import GenerateRequest
from components.explaining.writing import generate, pieces, prompt_ids
from model.sampling_config import SamplingConfig


def ids_of(found):
    return [[token.token_id for token in one.tokens] for one in found]


SOME = SamplingConfig(n_new=7, temperature=0.9, seed=3)


def asked(prompt, sampling=SOME, **changes):
    return GenerateRequest(prompt=prompt, sampling=sampling, **changes)


def test_texts_written_together_are_those_written_alone(opened):
    other = SOME.model_copy(update={"n_new": 4, "seed": 8})
    requests = [
        asked("rain and"),
        asked("bread there", other),
        asked("the moss"),
        asked("rain and"),
    ]
    together = generate(opened, requests)
    alone = [generate(opened, [request])[0] for request in requests]
    assert ids_of(together) == ids_of(alone)
    assert ids_of(together[:1]) == ids_of(together[3:])
    assert len(ids_of(together)[1]) == 4
    assert [one.request for one in together] == requests


def test_who_listens_hears_each_text_grow_and_can_end_it(opened):
    heard = []

    def wants_the_first(request, text):
        heard.append((request, text))
        return request == 0

    longer = SOME.model_copy(update={"n_new": 20, "temperature": 0.0})
    kept, ended = generate(opened, [asked("rain", longer), asked("moss", longer)], wants_the_first)
    mine = [text for request, text in heard if request == 0]
    assert len(mine) > 1
    assert all(later.startswith(text) for text, later in pairwise(mine))
    assert kept.text == mine[-1]
    assert len(ended.tokens) < len(kept.tokens)


def test_special_tokens_spelled_out_in_a_prompt_stay_text(opened):
    special = opened.tokenizer.specials
    ids = prompt_ids(opened, asked("a<|mask|><|eot_id|>")).tolist()
    assert ids[0] == special.bos_id
    assert special.mask_id not in ids
    assert special.end_of_turn_id not in ids
    assert opened.tokenizer.decode(ids) == "a<|mask|><|eot_id|>"


def test_a_message_is_put_into_the_form_of_a_conversation(opened):
    ids = prompt_ids(opened, asked("rain", form="chat")).tolist()
    names = [piece for piece in pieces(opened, ids) if piece.startswith("<|")]
    assert names == [
        "<|start_header_id|>", "<|end_header_id|>", "<|endofchunk|>", "<|eot_id|>",
        "<|start_header_id|>", "<|end_header_id|>",
    ]  # fmt: skip


def test_tokens_come_in_reading_order_whatever_the_order_of_commits(opened):
    (found,) = generate(opened, [asked("rain and")])
    positions = [token.position for token in found.tokens]
    first = len(found.prompt_tokens)
    assert positions == list(range(first, first + len(positions)))
    assert sorted(token.commit_order for token in found.tokens) != [
        token.commit_order for token in found.tokens
    ]
    assert found.text == opened.tokenizer.decode([token.token_id for token in found.tokens])


@pytest.mark.parametrize("prompt", ["", "  \n "])
def test_an_empty_prompt_is_refused(opened, prompt):
    with pytest.raises(ValueError, match="the prompt is empty; give at least one word"):
        generate(opened, [asked(prompt)])


def test_a_prompt_that_is_too_long_is_refused_with_what_would_fit(opened):
    with pytest.raises(ValueError, match=r"reads 64 at most; shorten the prompt to 57 tokens"):
        generate(opened, [asked("rain " * 60)])
    longest = SamplingConfig(n_new=64)
    with pytest.raises(ValueError, match="ask for fewer than 64 new ones"):
        generate(opened, [asked("rain", longest)])


def test_ids_outside_of_the_vocabulary_are_refused(opened):
    with pytest.raises(ValueError, match=r"holds token id 310, but ids are 0 … 309"):
        generate(opened, [GenerateRequest(prompt_ids=(310,), sampling=SOME)])


def test_a_mask_in_a_prompt_is_refused(opened):
    mask_id = opened.lm.config.mask_id
    with pytest.raises(ValueError, match="which only generation may place"):
        generate(opened, [GenerateRequest(prompt_ids=(3, mask_id), sampling=SOME)])


def test_text_and_ids_at_once_are_refused():
    with pytest.raises(ValueError, match="4 characters and one of 1 token ids; give one"):
        GenerateRequest(prompt="rain", prompt_ids=(3,))
