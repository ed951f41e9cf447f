"""The account of a text adds up, and says what it rests on."""

from dataclasses import replace

import pytest
import torch

from components.explaining.accounts import Account
from components.explaining.evidence import inputs, sources
from components.explaining.explanation import explain, explained
from components.explaining.schema import ExplainOptions, Explanation, GenerateRequest
from components.explaining.vocabulary import Vocabulary
from components.explaining.writing import AbandonedError, reading_order, write
from components.library import KnownConcept
from model.attribution import ConceptAttribution
from model.sampling_config import SamplingConfig
from tests.components.explained_run import WORDS

NAMES = [words[0] for words in WORDS]
REQUEST = GenerateRequest(
    prompt="the rain and", sampling=SamplingConfig(n_new=9, temperature=1.0, seed=2)
)
OPTIONS = ExplainOptions(
    top_concepts=4, top_token_concepts=2, top_sources=2, input_targets=3, evaluations=18, draws=30
)


@pytest.fixture(scope="module")
def found(opened):
    return explain(opened, REQUEST, OPTIONS)


def test_parts_of_every_token_add_up_to_its_logit(found):
    for token in found.tokens:
        total = token.known_logits + token.unknown_logits + token.residual_logits
        assert total == pytest.approx(token.logit, abs=1e-3)
    assert 0 < found.largest_sum_error_logits < 1e-3


def test_shares_of_a_chunk_add_up_and_lie_in_their_intervals(found):
    for shares in (found.shares, *(chunk.shares for chunk in found.chunks)):
        parts = (shares.known_share, shares.unknown_share, shares.residual_share)
        assert sum(part.value for part in parts) == pytest.approx(1.0)
        assert all(0 <= part.low <= part.value <= part.high <= 1 for part in parts)
        assert abs(shares.known_signed_share) <= shares.known_share.value + 1e-6
        assert abs(shares.unknown_signed_share) <= shares.unknown_share.value + 1e-6


def test_concepts_of_a_chunk_are_means_over_its_tokens_by_hand():
    vocabulary = Vocabulary(tuple(KnownConcept(i, f"c{i}", "", 0.1) for i in range(3)), 2, {})
    attribution = ConceptAttribution(
        known_ids_Nk=torch.tensor([[0, 1], [0, 2]]),
        known_Nk=torch.tensor([[2.0, 1.0], [-1.0, 1.0]]),
        unknown_ids_Nk=torch.tensor([[1], [1]]), unknown_Nk=torch.tensor([[4.0], [1.0]]),
        unknown_N=torch.tensor([4.0, 1.0]), residual_N=torch.tensor([1.0, 1.0]),
        logit_N=torch.tensor([8.0, 2.0]),
    )  # fmt: skip
    account = Account(attribution, vocabulary)
    told = [(one.name, one.signed_share, one.contribution_logits, one.n_tokens)
            for one in account.concepts(slice(0, 2), 2)]  # fmt: skip
    assert told == [
        ("unknown 1", 0.375, 2.5, 2), ("c2", 0.125, 0.5, 1), ("c1", 0.0625, 0.5, 1),
    ]  # fmt: skip
    assert account.signed_share("known", 0) == 0.0
    assert account.signed_share("unknown", 1) == 0.375


def test_chunks_cover_the_text_in_order(found):
    assert [chunk.start_position for chunk in found.chunks[1:]] == [
        chunk.end_position for chunk in found.chunks[:-1]
    ]
    assert "".join(chunk.text for chunk in found.chunks) == found.generation.text
    assert sum(chunk.n_tokens for chunk in found.chunks) == len(found.tokens)


def test_concepts_of_a_chunk_are_named_and_come_by_the_size_of_their_share(found):
    for chunk in found.chunks:
        sizes = [abs(one.signed_share) for one in chunk.concepts]
        assert sizes == sorted(sizes, reverse=True)
        kinds = [one.kind for one in chunk.concepts]
        assert (kinds.count("known"), kinds.count("unknown")) == (4, 4)
        assert {one.name for one in chunk.concepts if one.kind == "known"} <= set(NAMES)


def test_inputs_say_what_they_miss_and_never_name_a_position_behind_the_text(opened, found):
    for chunk in found.chunks:
        assert chunk.inputs is not None
        assert 0 <= chunk.inputs.n_not_reached <= chunk.inputs.n_targets
        assert 3 <= chunk.inputs.mean_evaluations <= 18
        assert chunk.inputs.completeness_error_share < 1.0
        assert sum(abs(one.signed_share) for one in chunk.inputs.shares) <= 1.0 + 1e-5
        assert all(one.position < opened.max_length for one in chunk.inputs.shares)


def test_sources_are_training_chunks_with_their_place_the_nearest_first(found):
    (chunk,) = [one for one in found.chunks if one.text.strip()][:1]
    assert [one.rank for one in chunk.sources] == [1, 2]
    assert chunk.sources[0].cosine >= chunk.sources[1].cosine
    assert chunk.sources[0].licence == "CC0-1.0"
    assert chunk.sources[0].end_char > chunk.sources[0].start_char
    assert found.index is not None
    assert "not influence" in found.index.claims


def test_a_chunk_of_special_tokens_alone_has_no_sources(opened):
    (written,) = write(opened, [REQUEST])
    commits_N = reading_order(written.trace)
    ids_T = written.trace.ids_T.clone()
    ids_T[written.trace.position_N[commits_N[0]]] = opened.lm.config.end_of_chunk_id
    token_N = ids_T[written.trace.position_N]
    ended = replace(written.trace, ids_T=ids_T, token_N=token_N)
    alone, rest = sources(opened, ended, commits_N, [slice(0, 1), slice(1, len(commits_N))], 2)
    assert alone == ()
    assert len(rest) == 2


def test_parts_that_were_not_asked_for_are_absent(opened):
    bare = ExplainOptions(input_targets=0, top_sources=0, top_token_concepts=0, draws=10)
    found = explain(replace(opened, retriever=None), REQUEST, bare)
    assert found.index is None
    assert all(chunk.inputs is None and chunk.sources == () for chunk in found.chunks)
    assert all(token.concepts == () for token in found.tokens)


def test_an_explanation_is_the_same_again_and_survives_json(opened, found):
    again = explain(opened, REQUEST, OPTIONS)
    assert again == found
    assert Explanation.model_validate_json(found.model_dump_json()) == found


def test_states_that_do_not_add_up_are_refused(opened):
    (written,) = write(opened, [REQUEST])
    trace = replace(written.trace, logit_N=written.trace.logit_N + 0.5)
    with pytest.raises(ValueError, match="does not take its states apart"):
        explained(opened, replace(written, trace=trace), OPTIONS)


def test_an_answer_nobody_waits_for_is_abandoned(opened):
    with pytest.raises(AbandonedError):
        explain(opened, REQUEST, OPTIONS, lambda request, text: False)


def test_before_the_inputs_of_each_chunk_it_is_asked_whether_they_are_wanted(opened):
    (written,) = write(opened, [REQUEST])
    commits_N = reading_order(written.trace)
    chunks = [slice(0, 4), slice(4, 6), slice(6, len(commits_N))]
    asked: list[int] = []

    def wanted_twice() -> None:
        asked.append(len(asked))
        if len(asked) == 3:
            raise AbandonedError("nobody waits")

    found = inputs(opened, written.trace, commits_N, chunks[:2], OPTIONS, wanted_twice)
    assert (len(found), asked) == (2, [0, 1])
    with pytest.raises(AbandonedError):
        inputs(opened, written.trace, commits_N, chunks, OPTIONS, wanted_twice)
    assert asked == [0, 1, 2]


def test_of_a_guided_text_the_account_is_the_networks_own_and_says_so(opened):
    guided = REQUEST.sampling.model_copy(update={"guidance": 0.5})
    found = explain(opened, REQUEST.model_copy(update={"sampling": guided}), OPTIONS)
    assert found.largest_sum_error_logits < 1e-3
    assert "the text was guided" in found.notes[-1]
