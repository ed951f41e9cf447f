"""Generation: the cache is exact, each row is its own, edits touch what they should."""

import pytest
import torch
from torch import Tensor

from model.language_model import LanguageModel
from model.sampling import draw, generate
from model.sampling_config import SamplingConfig
from model.trace import Trace
from tests.model.explained import BLOCK, EOS, MASK, loud_network, some_prompts

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


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 0\).*<\|bos\|>"):
        generate(loud_network(), some_prompts(1, 0), SamplingConfig(n_new=1))


def test_a_trace_that_commits_a_position_twice_is_refused() -> None:
    once, twice = torch.tensor([0, 1]), torch.tensor([4, 4])
    with pytest.raises(ValueError, match=r"commits a position twice: \[4, 4\]"):
        Trace(
            ids_T=torch.arange(6), n_prompt=2, end=6, stopped=False, mask_id=MASK, group_N=once,
            position_N=twice, token_N=once, logit_N=torch.zeros(2), confidence_N=torch.ones(2),
            state_ND=torch.zeros(2, 3), seen_N=once, readout_N=twice,
        )  # fmt: skip
