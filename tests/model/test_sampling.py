"""Generation: the cache is exact, each row is its own, edits touch what they should."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import EntropyConfig, SamplingConfig
from model.unmasking import draw
from tests.model.explained import BLOCK, EOS, FIRST_TEXT, MASK, loud_network, some_prompts

NEVER = [0, 2, MASK]


def without_cache(lm: LanguageModel, prompt_P: Tensor, n_new: int) -> tuple[list[int], list[int]]:
    """Greedy unmasking with the whole sequence and the whole head at every step, one row."""
    total = len(prompt_P) + n_new
    length = -(-total // BLOCK) * BLOCK
    ids_T = torch.cat([prompt_P, torch.full((length - len(prompt_P),), MASK)])
    order: list[int] = []
    end = total
    for start in range(len(prompt_P) // BLOCK * BLOCK, total, BLOCK):
        while True:
            open_ = [t for t in range(start, min(start + BLOCK, end)) if ids_T[t] == MASK]
            if not open_:
                break
            logits_TV = lm(ids_T[None])[0].index_fill(-1, torch.tensor(NEVER), -torch.inf)
            position = max(open_, key=lambda t: float(logits_TV[t].softmax(-1).max()))
            ids_T[position] = logits_TV[position].argmax()
            order.append(position)
            if ids_T[position] == EOS:
                end = position + 1
        if end < start + BLOCK:
            break
    return ids_T[len(prompt_P) : end].tolist(), order


@torch.no_grad()
@pytest.mark.parametrize("n_prompt", [1, 5, 8, 11, 16, 23])
def test_cached_generation_equals_recomputing_everything_token_for_token(n_prompt: int) -> None:
    lm = loud_network()
    prompts_BP = some_prompts(2, n_prompt, seed=n_prompt)
    traces = generate(lm, prompts_BP, SamplingConfig(n_new=19))
    for prompt_P, trace in zip(prompts_BP, traces, strict=True):
        tokens, order = without_cache(lm, prompt_P, 19)
        assert trace.generated == tokens
        assert trace.position_N.tolist() == order


@torch.no_grad()
def test_causal_generation_equals_recomputing_everything_token_for_token() -> None:
    lm = loud_network("causal")
    ids_P = some_prompts(1, 6)[0]
    trace = generate(lm, ids_P[None], SamplingConfig(n_new=13))[0]
    for _ in range(len(trace.generated)):
        logits_V = lm(ids_P[None])[0, -1].index_fill(-1, torch.tensor(NEVER), -torch.inf)
        ids_P = torch.cat([ids_P, logits_V.argmax()[None]])
    assert trace.ids_T.tolist() == ids_P.tolist()


@torch.no_grad()
@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_replaying_a_snapshot_gives_the_recorded_state_and_logit(attention: str) -> None:
    lm = loud_network(attention)
    trace = generate(lm, some_prompts(1, 11), SamplingConfig(n_new=18, temperature=0.8))[0]
    for group in range(trace.n_groups):
        seen = trace.snapshot(group)
        hidden_TD = lm.hidden(seen.ids_T[None])[0]
        state_ND, token_N = hidden_TD[seen.readout_N], trace.token_N[seen.commits_N]
        torch.testing.assert_close(state_ND, trace.state_ND[seen.commits_N])
        logit_N = lm.unembed(state_ND).gather(1, token_N[:, None])[:, 0]
        torch.testing.assert_close(logit_N, trace.logit_N[seen.commits_N], atol=1e-4, rtol=1e-4)


def test_blocks_lie_on_the_absolute_grid_and_finish_before_the_next_begins() -> None:
    trace = generate(loud_network(), some_prompts(1, 11), SamplingConfig(n_new=19))[0]
    blocks = (trace.position_N // BLOCK).tolist()
    assert blocks == sorted(blocks)
    assert trace.seen_N.tolist() == [(block + 1) * BLOCK for block in blocks]


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_each_row_stops_by_itself_at_its_own_stop_token(attention: str) -> None:
    lm, prompts_BP = loud_network(attention), some_prompts(5, 6, seed=4)
    config = SamplingConfig(n_new=17, temperature=1.0, seed=2)
    longest = max(generate(lm, prompts_BP, config), key=lambda trace: trace.end)
    stop_id = longest.generated[3]
    traces = generate(lm, prompts_BP, config, stop_ids=[stop_id])
    assert len({trace.end for trace in traces}) > 2
    assert any(trace.generated[-1] == stop_id for trace in traces)
    for trace in traces:
        stops = [token for token in trace.generated if token in (stop_id, EOS)]
        assert stops == ([trace.generated[-1]] if trace.stopped else [])
        assert trace.stopped or len(trace.generated) == 17


def test_a_row_draws_the_same_alone_as_in_a_batch() -> None:
    lm, prompts_BP = loud_network(), some_prompts(4, 9)
    config = SamplingConfig(n_new=14, temperature=1.0, top_p=0.9, seed=5)
    together = generate(lm, prompts_BP, config)
    alone = generate(lm, prompts_BP[2:3], config, sample_ids=[2])
    assert alone[0].generated == together[2].generated


def test_rows_with_seeds_of_their_own_draw_as_they_do_alone() -> None:
    lm, prompts_BP = loud_network(), some_prompts(3, 9)
    config = SamplingConfig(n_new=14, temperature=1.0, seed=5)
    seeds = [7, 5, 8]
    together = generate(lm, prompts_BP, config, sample_ids=[0, 0, 0], seeds=seeds)
    for row, seed in enumerate(seeds):
        own = config.model_copy(update={"seed": seed})
        (alone,) = generate(lm, prompts_BP[row : row + 1], own)
        assert alone.generated == together[row].generated
    assert together[0].generated != generate(lm, prompts_BP[:1], config)[0].generated


def test_another_seed_draws_another_text() -> None:
    lm, prompts_BP = loud_network(), some_prompts(1, 7)
    texts = [
        generate(lm, prompts_BP, SamplingConfig(n_new=12, temperature=1.5, seed=seed))[0].generated
        for seed in (0, 1)
    ]
    assert texts[0] != texts[1]


def test_no_bos_pad_or_mask_is_ever_generated() -> None:
    lm = loud_network()
    with torch.no_grad():
        lm.embedding.weight[NEVER] *= 5.0
    for trace in generate(lm, some_prompts(3, 5), SamplingConfig(n_new=20, temperature=2.0)):
        assert not set(trace.generated) & set(NEVER)


def test_repetition_penalty_lowers_generated_tokens_and_spares_the_prompt() -> None:
    lm, prompts_BP = loud_network("causal"), some_prompts(1, 7)
    plain = generate(lm, prompts_BP, SamplingConfig(n_new=20))[0]
    penalised = generate(lm, prompts_BP, SamplingConfig(n_new=20, repetition_penalty=50.0))[0]
    assert penalised.generated[0] == plain.generated[0]  # nothing was generated before it
    assert len(set(plain.generated)) < len(plain.generated)
    assert len(set(penalised.generated)) == len(penalised.generated)


def test_draw_takes_tokens_in_proportion_and_never_outside_the_nucleus() -> None:
    logits_RV = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(4, -1)
    uniform_R = torch.tensor([0.0, 0.6, 0.7, 0.999])
    whole = SamplingConfig(n_new=1, temperature=1.0)
    assert draw(logits_RV, whole, uniform_R).tolist() == [0, 1, 1, 3]
    nucleus = SamplingConfig(n_new=1, temperature=1.0, top_p=0.7)  # 0.5 + 0.3 hold it
    assert draw(logits_RV, nucleus, uniform_R).tolist() == [0, 0, 1, 1]
    assert draw(logits_RV, SamplingConfig(n_new=1), uniform_R).tolist() == [0, 0, 0, 0]


def test_a_text_longer_than_the_network_is_refused_with_the_numbers() -> None:
    with pytest.raises(ValueError, match=r"40 prompt tokens and 9 new ones .* max_length 48"):
        generate(loud_network(), some_prompts(1, 40), SamplingConfig(n_new=9))


@pytest.mark.parametrize(
    ("prompt", "n_new", "said"),
    [
        ([], 1, r"shape \(0,\).*<\|bos\|>"),
        ([5, 6], 0, "0 new tokens behind a prompt without"),
    ],
)
def test_nothing_to_read_and_nothing_to_write_are_refused(
    prompt: list[int], n_new: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        generate(
            loud_network(),
            [torch.tensor(prompt, dtype=torch.int64)],
            SamplingConfig(n_new=n_new),
        )


@pytest.mark.parametrize(
    ("prompt", "guidance", "said"),
    [([5, MASK, 6], 0.0, "<|mask|> to fill"), ([5, 6], 1.5, "guidance 1.5")],
)
def test_networks_that_read_from_left_to_right_know_no_masks(
    prompt: list[int], guidance: float, said: str
) -> None:
    config = SamplingConfig(n_new=2, guidance=guidance)
    with pytest.raises(ValueError, match=re.escape(said)):
        generate(loud_network("causal"), [torch.tensor(prompt)], config)


def test_guidance_that_leaves_what_float32_holds_is_refused_before_weights_are_blamed() -> None:
    with pytest.raises(ValueError, match=r"guidance\n.*less than or equal to 100"):
        SamplingConfig(n_new=4, guidance=1e39)


def test_damaged_weights_are_named() -> None:
    lm = loud_network()
    with torch.no_grad():
        lm.embedding.weight[7, 2] = torch.nan
    with pytest.raises(ValueError, match="is not finite: the weights are damaged"):
        generate(lm, some_prompts(1, 3), SamplingConfig(n_new=2))


@torch.no_grad()
@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_prompts_of_any_lengths_in_one_batch_are_continued_as_each_would_be_alone(
    attention: str,
) -> None:
    lm = loud_network(attention)
    lengths = [BLOCK + 1, 1, BLOCK, 20, BLOCK - 1, 13]
    prompts = [some_prompts(1, length, seed=length)[0] for length in lengths]
    config = SamplingConfig(n_new=17, temperature=0.7, top_p=0.9, seed=3)
    stops = list(range(FIRST_TEXT, FIRST_TEXT + 4))
    together = generate(lm, prompts, config, sample_ids=lengths, stop_ids=stops)
    assert len({trace.end - trace.n_prompt for trace in together}) > 1  # some stop early
    for prompt_P, trace in zip(prompts, together, strict=True):
        (alone,) = generate(lm, [prompt_P], config, sample_ids=[len(prompt_P)], stop_ids=stops)
        assert alone.generated == trace.generated
        assert alone.position_N.tolist() == trace.position_N.tolist()
        torch.testing.assert_close(alone.logit_N, trace.logit_N, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_guided_logits_are_those_of_the_text_with_and_without_its_prompt() -> None:
    lm = loud_network()
    prompts = [some_prompts(1, 11)[0], some_prompts(1, 5, seed=2)[0]]
    plain = generate(lm, prompts, SamplingConfig(n_new=14))
    for at, trace in enumerate(generate(lm, prompts, SamplingConfig(n_new=14, guidance=1.5))):
        assert trace.generated != plain[at].generated
        for group in range(trace.n_groups):
            seen = trace.snapshot(group)
            bare = trace.without_prompt(seen)
            assert (bare.ids_T[: trace.n_prompt] == MASK).all()
            conditional_NV, bare_NV = (
                lm(one.ids_T[None])[0, one.readout_N] for one in (seen, bare)
            )
            guided_NV = bare_NV + 2.5 * (conditional_NV - bare_NV)
            logit_N = guided_NV.gather(1, trace.token_N[seen.commits_N][:, None])[:, 0]
            recorded_N = trace.logit_N[seen.commits_N]
            torch.testing.assert_close(logit_N, recorded_N, atol=2e-4, rtol=1e-4)
            assert trace.token_N[seen.commits_N] == guided_NV.index_fill(
                -1, torch.tensor(NEVER), -torch.inf
            ).argmax(-1)


@torch.no_grad()
def test_blanks_are_filled_where_they_stand_and_see_the_text_behind_them_in_their_block() -> None:
    lm = loud_network()
    text_P = some_prompts(1, 22, seed=5)[0]
    blanks = [2, 3, 17]
    prompt_P = text_P.clone()
    prompt_P[blanks] = MASK
    (trace,) = generate(lm, [prompt_P], SamplingConfig(n_new=0))
    assert sorted(trace.position_N.tolist()) == blanks
    kept = [at for at in range(22) if at not in blanks]
    assert trace.ids_T[kept].tolist() == text_P[kept].tolist()
    assert (trace.n_prompt, trace.end, trace.stopped) == (2, 22, False)
    first_block = prompt_P[:BLOCK]
    logits_TV = lm(first_block[None])[0].index_fill(-1, torch.tensor([*NEVER, EOS]), -torch.inf)
    surest = max((2, 3), key=lambda at: float(logits_TV[at].softmax(-1).max()))
    assert int(trace.position_N[0]) == surest
    assert int(trace.token_N[0]) == int(logits_TV[surest].argmax())


def test_no_stop_token_is_put_into_a_blank() -> None:
    lm = loud_network()
    with torch.no_grad():
        lm.embedding.weight[EOS] *= 30.0  # the likeliest token of about every second state
    prompt_P = some_prompts(1, 16, seed=5)[0]
    prompt_P[1:14] = MASK
    (trace,) = generate(lm, [prompt_P], SamplingConfig(n_new=3))
    assert EOS not in trace.ids_T[1:14].tolist()
    assert EOS in trace.ids_T[16:].tolist()


@torch.no_grad()
def test_a_threshold_commits_all_that_is_certain_and_never_nothing() -> None:
    lm, prompts = loud_network(), [some_prompts(1, n, seed=n)[0] for n in (3, 9, 12)]
    config = SamplingConfig(n_new=18)
    one_a_step = generate(lm, prompts, config)
    assert all(trace.n_groups == len(trace.position_N) for trace in one_a_step)
    several = generate(lm, prompts, config.model_copy(update={"threshold": 0.25}))
    assert any(trace.n_groups < len(trace.position_N) for trace in several)
    for trace in several:
        for group in range(trace.n_groups):
            seen = trace.snapshot(group)
            logits_TV = lm(seen.ids_T[None])[0].index_fill(-1, torch.tensor(NEVER), -torch.inf)
            sure_T = logits_TV.softmax(-1).max(-1).values
            now = trace.position_N[seen.commits_N].tolist()
            assert all(float(sure_T[at]) >= 0.25 for at in now) or len(now) == 1
            assert trace.confidence_N[seen.commits_N].tolist() == pytest.approx(
                sure_T[now].tolist(), abs=1e-4
            )
    never_sure = generate(lm, prompts, config.model_copy(update={"threshold": 1.0}))
    assert [trace.generated for trace in never_sure] == [trace.generated for trace in one_a_step]


def test_the_temperature_follows_the_entropy_between_its_bounds() -> None:
    config = SamplingConfig(n_new=1, temperature=1.0, entropy=EntropyConfig(low=0.2, high=0.6))
    sure_V = torch.tensor([9.0, 0.0, 0.0, 0.0])
    even_V = torch.tensor([0.3, 0.0, 0.0, 0.0])
    uniform_R = torch.tensor([0.5])
    # Undecided: 0.6 · softmax keeps the first at e^(0.3/0.6) to 1, which is 0.355 of the mass.
    just_in, just_out = torch.tensor([0.354]), torch.tensor([0.356])
    nearly = SamplingConfig(n_new=1, temperature=0.6)
    assert draw(even_V[None], nearly, just_in).tolist() == [0]
    assert draw(even_V[None], nearly, just_out).tolist() != [0]
    assert draw(sure_V[None], config, uniform_R).tolist() == [0]
    hot = config.model_copy(update={"temperature": 40.0})
    assert draw(sure_V[None], hot, torch.tensor([0.9])).tolist() != [0]
    cold = config.model_copy(update={"temperature": 0.0})
    assert draw(even_V[None], cold, torch.tensor([0.999])).tolist() == [0]


def test_top_concepts_are_those_of_the_recorded_states_and_none_unless_asked() -> None:
    lm, prompts = loud_network(), [some_prompts(1, n)[0] for n in (4, 9)]
    config = SamplingConfig(n_new=6, top_concepts=2)
    for trace in generate(lm, prompts, config):
        for found, head in ((trace.known, lm.concepts.known), (trace.unknown, lm.concepts.unknown)):
            wanted = head.top(trace.state_ND)
            assert found.ids.tolist() == wanted.ids[:, :2].tolist()
            assert torch.equal(found.activations, wanted.activations[:, :2])
    assert generate(lm, prompts, SamplingConfig(n_new=6))[0].known.ids.shape == (6, 0)


def test_who_listens_hears_finished_blocks_and_can_end_a_row_without_the_others() -> None:
    lm, prompts = loud_network(), [some_prompts(1, n, seed=n)[0] for n in (3, 12)]
    config = SamplingConfig(n_new=20)
    whole = generate(lm, prompts, config)
    told: list[tuple[int, list[int]]] = []

    def heard(row: int, ids: list[int]) -> bool:
        told.append((row, ids))
        return row == 1

    ended, other = generate(lm, prompts, config, heard=heard)
    assert other.generated == whole[1].generated
    assert ended.generated == whole[0].generated[: BLOCK - 3]
    assert not ended.stopped
    assert [ids for row, ids in told if row == 0] == [ended.generated]
    of_other = [ids for row, ids in told if row == 1]
    assert of_other[-1] == other.generated
    assert all(a == b[: len(a)] for a, b in pairwise(of_other))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"position_N": torch.tensor([4, 4])}, r"commits a position twice: \[4, 4\]"),
        ({"position_N": torch.tensor([1, 4])}, "position 1 of a prompt of 2 tokens"),
        ({"group_N": torch.tensor([0, 2])}, "without a gap"),
        ({"token_N": torch.tensor([9, 3])}, "other tokens than its commits"),
        ({"logit_N": torch.tensor([0.0, torch.inf])}, "not finite"),
        ({"seen_N": torch.zeros(3)}, "'seen': 3"),
        ({"given_T": torch.ones(6, dtype=torch.bool)}, "was given"),
    ],
)
def test_a_trace_that_contradicts_itself_is_refused(broken: dict[str, Tensor], said: str) -> None:
    (trace,) = generate(loud_network(), some_prompts(1, 2), SamplingConfig(n_new=2))
    two = replace(
        trace, ids_T=torch.arange(6), given_T=torch.arange(6) < 2,
        position_N=torch.tensor([4, 3]), token_N=torch.tensor([4, 3]),
    )  # fmt: skip
    with pytest.raises(ValueError, match=said):
        replace(two, **broken)  # type: ignore[arg-type]
