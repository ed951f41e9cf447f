"""`is_greedy` is what greedy generation writes, no more and no less (method §12.2 item 14)."""

import pytest
import torch

from model.conditional import Request
from model.greedy import are_greedy
from model.sampling import generate
from model.sampling_config import SamplingConfig
from tests.model import tiny

PROMPTS = [(3, 4), (7, 9), (12, 1), (10, 5), (1, 12)]  # tokens before, and written


@pytest.mark.parametrize("family", ["cdlm", "ar_concept"])
def test_what_greedy_decoding_writes_is_greedy_and_nothing_else_is(family: str):
    lm = tiny.lm(family)  # type: ignore[arg-type]
    asked = []
    for n_before, n_new in PROMPTS:
        prompt_T = tiny.ids(1, seed=n_before)[0, :n_before]
        (trace,) = generate(lm, prompt_T[None], SamplingConfig(n_new=n_new))
        written_T = torch.tensor(trace.generated)
        asked.append(Request(torch.cat([prompt_T, written_T]), n_before, name=0))
        changed_T = written_T.clone()
        changed_T[-1] = (changed_T[-1] + 1) % 32
        asked.append(Request(torch.cat([prompt_T, changed_T]), n_before, name=0))
    assert are_greedy(lm, asked, rows=4) == [True, False] * len(PROMPTS)
