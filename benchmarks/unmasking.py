"""Several tokens a pass: how many, and what the text loses in the eyes of one a pass.

    python -m benchmarks.unmasking STAGES

STAGES is the folder of a run's finished stages. Held-out documents are continued by their network,
one token a pass and with thresholds of certainty. The loss of a text is that of its tokens under
the network that commits one a pass: the surest open position first, the text's own token put there,
earlier blocks finished. Intervals are 95%, bootstrapped by prompt; what a threshold costs is the
difference from one a pass over the same prompts.

Passes through the open block are counted. Each finished block takes one more, whatever the
threshold.

Shape suffixes: B prompt   T position   V vocabulary   W weighting (draw)
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from components import prompts
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model.intervals import Floats, Interval, intervals
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace
from model.transformer import NO_PAST

THRESHOLDS = (0.95, 0.9, 0.8, 0.7, 0.5, 0.1, 0.05)
N_PROMPTS, N_PROMPT, N_NEW = 40, 32, 64
DRAWS = 2_000


@dataclass(frozen=True)
class Written:
    """Of each prompt's continuation."""

    tokens_B: Floats
    passes_B: Floats
    nats_B: Floats


def lines(lm: LanguageModel, given: Sequence[Tensor]) -> Iterator[str]:
    """One line for each temperature and threshold."""
    for temperature in (0.0, 1.0):
        config = SamplingConfig(n_new=N_NEW, temperature=temperature)
        plain = written(lm, given, config)
        yield _line(config, plain, plain)
        for threshold in THRESHOLDS:
            config = SamplingConfig(n_new=N_NEW, temperature=temperature, threshold=threshold)
            yield _line(config, written(lm, given, config), plain)


def written(lm: LanguageModel, given: Sequence[Tensor], config: SamplingConfig) -> Written:
    """Continue all prompts."""
    traces = generate(lm, given, config)
    return Written(
        np.array([len(trace.generated) for trace in traces], dtype=np.float64),
        np.array([trace.n_groups for trace in traces], dtype=np.float64),
        nats(lm, traces).numpy(),
    )


@torch.no_grad()
def nats(lm: LanguageModel, traces: Sequence[Trace]) -> Tensor:
    """Nats of each generated text (B), as one a pass would commit its tokens."""
    block, past = lm.config.backbone.block, NO_PAST
    never = torch.tensor([lm.config.bos_id, lm.config.pad_id, lm.config.mask_id])
    text_BT = torch.stack([trace.ids_T for trace in traces])
    given_BT = torch.stack([trace.given_T for trace in traces])
    end_B1 = torch.tensor([[trace.end] for trace in traces])
    open_BT = ~given_BT & (torch.arange(text_BT.shape[1]) < end_B1)
    seen_BT = text_BT.masked_fill(~given_BT, lm.config.mask_id)
    total_B, row_B = torch.zeros(len(traces), dtype=torch.float64), torch.arange(len(traces))
    for start in range(0, text_BT.shape[1], block):
        here = slice(start, start + block)
        while open_BT[:, here].any():
            logits_BTV = lm.logits(lm.hidden(seen_BT[:, here], past))
            logits_BTV = logits_BTV.index_fill_(-1, never, float("-inf"))
            sure_BT = logits_BTV.amax(-1) - logits_BTV.logsumexp(-1)
            at_B = sure_BT.masked_fill(~open_BT[:, here], float("-inf")).argmax(1)
            rows = row_B[open_BT[:, here].any(1)]
            at = at_B[rows]
            token = text_BT[rows, start + at]
            logp_V = logits_BTV[rows, at].double().log_softmax(-1)
            total_B[rows] -= logp_V.gather(1, token[:, None])[:, 0]
            seen_BT[rows, start + at], open_BT[rows, start + at] = token, False
        past = lm.extend(past, seen_BT[:, here])
    return total_B


def _line(config: SamplingConfig, ours: Written, plain: Written) -> str:
    def statistic(weight_WB: Floats) -> Floats:
        tokens_W, passes_W = weight_WB @ ours.tokens_B, weight_WB @ ours.passes_B
        loss_W = weight_WB @ ours.nats_B / tokens_W
        cost_W = loss_W - weight_WB @ plain.nats_B / (weight_WB @ plain.tokens_B)
        return np.stack([tokens_W / passes_W, loss_W, cost_W], axis=1)

    rate, loss, cost = intervals(statistic, len(ours.tokens_B), draws=DRAWS, seed=0)
    how = "one a pass" if config.threshold is None else f"threshold {config.threshold:g}"
    return (
        f"temperature {config.temperature:g}, {how:<14} tokens a pass {_shown(rate)}   nats a "
        f"token {_shown(loss)}, above one a pass {_shown(cost)}   "
        f"(n = {int(ours.tokens_B.sum())} tokens of {rate.n_groups} prompts)"
    )


def _shown(one: Interval) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


if __name__ == "__main__":
    torch.set_num_threads(1)
    stages = Path(sys.argv[1])
    stream = TokenStream(next(stages.glob("pack/*/tokens")))
    network = checkpoints.load(next(stages.glob("midtrain/*/midtrained")))
    held_out = prompts.openings(stream, [N_PROMPT] * N_PROMPTS, "test", seed=0)
    for line in lines(network, [torch.tensor(one.ids) for one in held_out]):
        print(line, flush=True)
