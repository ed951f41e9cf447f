"""Fill blanks in a text: masks that stand among words, not behind them (paper §5).

A blank sees the text before it, and behind it as far as its own block of the network reaches.
"""

from dataclasses import dataclass

import torch

from components.explaining.opened import Opened
from components.explaining.writing import text_of
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace


@dataclass(frozen=True)
class Filled:
    """A text whose blanks were filled."""

    text: str
    blanks: tuple[str, ...]
    """What stands in each blank, in reading order."""

    trace: Trace


def fill(
    opened: Opened, prompt: str, blank: str, n_tokens: int, sampling: SamplingConfig
) -> Filled:
    """Put `n_tokens` tokens where the prompt has the marker `blank`.

    Raises ValueError where the marker does not occur, the checkpoint has no tokenizer, or the text
    is longer than the network reads.
    """
    if not blank or blank not in prompt:
        raise ValueError(
            f"the prompt has no blank {blank!r}; write it where something is to be filled in"
        )
    if n_tokens < 1:
        raise ValueError(f"{n_tokens} tokens for a blank; ask for at least 1")
    if opened.tokenizer is None:
        raise ValueError(
            "this checkpoint has no tokenizer.json, so it cannot tell words from blanks; put the "
            "tokenizer's file into its folder"
        )
    ids, starts = [opened.lm.config.bos_id], []
    for number, part in enumerate(prompt.split(blank)):
        if number:
            starts.append(len(ids))
            ids += [opened.lm.config.mask_id] * n_tokens
        ids += opened.tokenizer.encode(part) if part else []
    stop_ids = [opened.tokenizer.specials.end_of_turn_id]
    (trace,) = generate(opened.lm, [torch.tensor(ids)], sampling, stop_ids=stop_ids)
    written: list[int] = trace.ids_T[: trace.end].tolist()
    blanks = tuple(text_of(opened, written[start : start + n_tokens]) for start in starts)
    return Filled(text_of(opened, written), blanks, trace)
