"""The trials of a steering run: which text is continued, for which concept, under which change.

Arms

    none            the network as it is
    injection       amplify: the concept's direction is added, calibrated to τ above zero
    injection_mask  suppress: the direction is taken away (τ below zero) and the concept's tokens
                    are lowered by the ReLU mask

Every arm continues the same prompts with the same random numbers, so that arms differ by the
change alone. Strength 0 goes through the steered code and must give the unsteered text to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from components import prompts
from components.prompts import Prompt
from components.steering.config import SteerConfig
from components.steering.words import WordJudge
from components.tokens import TokenStream
from model import steering
from model.continuation import Reading, read
from model.directions import known
from model.language_model import LanguageModel
from model.sampling import generate
from model.trace import Trace

_HELD_OUT = "test"
_SPLITS = ("test", "valid", "train")
_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Arm:
    """One change, for every trial."""

    name: str
    strength: float


@dataclass(frozen=True)
class Trial:
    """One concept and one prompt."""

    judge: WordJudge
    prompt_id: int
    prompt: Prompt
    about: bool
    """Whether the prompt begins a chunk that carries the concept."""


@dataclass(frozen=True)
class Continued:
    """Traces of some trials under an arm, and how the unsteered network reads them."""

    traces: list[Trace]
    reading: Reading


def arms(config: SteerConfig) -> list[Arm]:
    """The control first, then each arm from strength 0 up."""
    rising = sorted(config.strengths)
    return [
        Arm("none", 0.0),
        *(Arm("injection", strength) for strength in rising),
        *(Arm("injection_mask", -strength if strength else 0.0) for strength in rising),
    ]


def trials(stream: TokenStream, judges: Sequence[WordJudge], config: SteerConfig) -> list[Trial]:
    """Concepts evenly spread over `judges`, which rise in prevalence, times the prompts."""
    neutral = prompts.openings(
        stream, [config.prompt_tokens] * config.n_neutral, _HELD_OUT, config.seed
    )
    own = {judge.concept.concept_id: _about(stream, judge, config) for judge in judges}
    able = [judge for judge in judges if len(own[judge.concept.concept_id]) == config.n_about]
    if len(neutral) < config.n_neutral or not able:
        raise ValueError(
            f"{len(neutral)} of {config.n_neutral} neutral prompts and {len(able)} concepts with "
            f"{config.n_about} prompts of their own have {config.prompt_tokens} tokens; lower "
            f"prompt_tokens, or ask for fewer prompts"
        )
    places = np.linspace(0, len(able) - 1, min(config.n_concepts, len(able))).round().astype(int)
    return [
        Trial(able[place], prompt_id, prompt, about=prompt_id >= config.n_neutral)
        for place in places.tolist()
        for prompt_id, prompt in enumerate([*neutral, *own[able[place].concept.concept_id]])
    ]


def run(
    lm: LanguageModel, wanted: Sequence[Trial], arm: Arm, end_of_turn_id: int, config: SteerConfig
) -> list[Continued]:
    """Continue every trial under one arm, some rows at a time."""
    share = config.suppress_from if arm.name == "injection_mask" else config.amplify_from
    first_layer = int(share * lm.config.backbone.n_layers)
    found = []
    for start in range(0, len(wanted), _ROWS_AT_ONCE):
        rows = wanted[start : start + _ROWS_AT_ONCE]
        concepts = [trial.judge.concept.concept_id for trial in rows]
        action: steering.Action = "suppress" if arm.name == "injection_mask" else "amplify"
        changes = [
            [steering.Change(known(concept), abs(arm.strength), action, layers=first_layer)]
            for concept in concepts
        ]
        traces = generate(
            lm,
            torch.tensor([trial.prompt.ids for trial in rows]),
            config.sampling,
            stop_ids=[end_of_turn_id],
            sample_ids=range(start, start + len(rows)),
            steering=None if arm.name == "none" else steering.steering(lm, changes),
        )
        found.append(Continued(traces, _read(lm, traces, torch.tensor(concepts), config.seed)))
    return found


def _about(stream: TokenStream, judge: WordJudge, config: SteerConfig) -> list[Prompt]:
    lengths = [config.prompt_tokens] * config.n_about
    return prompts.about(stream, judge.concept.concept_id, lengths, _SPLITS, config.seed)


def _read(lm: LanguageModel, traces: Sequence[Trace], concept_B: Tensor, seed: int) -> Reading:
    ids_BT = torch.stack([trace.ids_T for trace in traces])
    end_B1 = torch.tensor([[trace.end] for trace in traces])
    position_T = torch.arange(ids_BT.shape[1])
    ids_BT = ids_BT.masked_fill(position_T >= end_B1, lm.config.mask_id)
    continued_BT = (position_T >= traces[0].n_prompt) & (position_T < end_B1)
    return read(lm, ids_BT, continued_BT, concept_B, seed)
