"""The trials of a steering run: which text is continued, for which concept, under which change.

Arms

    none            the network as it is                                       every prompt
    prompting       a sentence about the concept before the prompt, no change  neutral prompts
    injection       amplify: the concept's direction is added, calibrated to τ neutral prompts
    injection_mask  suppress: the direction is taken away and the concept's    prompts about it
                    tokens are lowered by the ReLU mask

Every arm continues the same prompts with the same random numbers, so that arms differ by the
change alone. Strength 0 goes through the steered code, for the first prompt of either kind, and
must give the unsteered text to the bit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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
from model.engine import dtype
from model.language_model import LanguageModel
from model.sampling import generate
from model.steering import Change
from model.tokenizer import Tokenizer
from model.trace import Trace

_HELD_OUT = "test"
_SPLITS = ("test", "valid", "train")
ArmName = Literal["none", "prompting", "injection", "injection_mask"]


@dataclass(frozen=True)
class Arm:
    """One change, for every trial it is meant for. Suppression has a strength below 0."""

    name: ArmName
    strength: float = 0.0

    def meets(self, trial: "Trial") -> bool:
        """Whether the trial is one of this arm's."""
        if self.name == "none":
            return True
        ours = trial.about == (self.name == "injection_mask")
        return ours and (trial.is_first or self.name == "prompting" or self.strength != 0.0)


@dataclass(frozen=True)
class Trial:
    """One concept and one prompt."""

    number: int
    judge: WordJudge
    prompt_id: int
    prompt: Prompt
    about: bool
    """Whether the prompt begins a chunk that carries the concept."""

    is_first: bool
    """Of its concept's prompts of this kind."""

    @property
    def concept_id(self) -> int:
        return self.judge.concept.concept_id


@dataclass(frozen=True)
class Continued:
    """Trials of one arm, their traces, and how the unsteered network reads them."""

    trials: list[Trial]
    traces: list[Trace]
    nats: list[float]
    presence: list[float]


def arms(config: SteerConfig) -> list[Arm]:
    """The controls first, then each arm from strength 0 up."""
    return [
        Arm("none"),
        Arm("prompting"),
        *(Arm("injection", strength) for strength in (0.0, *config.rising)),
        Arm("injection_mask", 0.0),
        *(Arm("injection_mask", -strength) for strength in config.lowering),
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
            f"{config.n_about} prompts of {config.prompt_tokens} tokens about them; lower "
            f"prompt_tokens, or ask for fewer prompts"
        )
    places = np.linspace(0, len(able) - 1, min(config.n_concepts, len(able))).round().astype(int)
    wanted = [
        (able[place], prompt_id, prompt)
        for place in places.tolist()
        for prompt_id, prompt in enumerate([*neutral, *own[able[place].concept.concept_id]])
    ]
    return [
        Trial(
            number, judge, prompt_id, prompt, about=prompt_id >= config.n_neutral,
            is_first=prompt_id in (0, config.n_neutral),
        )
        for number, (judge, prompt_id, prompt) in enumerate(wanted)
    ]  # fmt: skip


def run(
    lm: LanguageModel, wanted: Sequence[Trial], arm: Arm, tokenizer: Tokenizer, config: SteerConfig
) -> Continued:
    """Continue the trials of one arm, some rows at a time."""
    mine = [trial for trial in wanted if arm.meets(trial)]
    found = Continued(mine, [], [], [])
    low = dtype(config.dtype) == torch.bfloat16
    for start in range(0, len(mine), config.batch_rows):
        rows = mine[start : start + config.batch_rows]
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            traces = generate(
                lm,
                [_prompt(trial, arm, tokenizer, config) for trial in rows],
                config.sampling,
                stop_ids=[tokenizer.specials.end_of_turn_id],
                sample_ids=[trial.number for trial in rows],
                steering=None if arm.name in ("none", "prompting") else _steering(
                    lm, rows, arm, config
                ),
            )  # fmt: skip
            texts = [trace.generated for trace in traces]
            concept_B = torch.tensor([trial.concept_id for trial in rows])
            asked = {trial.number: trial.prompt for trial in rows}
            reading = read_texts(lm, asked, texts, concept_B, config)
        found.traces.extend(traces)
        found.nats.extend(reading.nats_B.tolist())
        found.presence.extend(reading.presence_B.tolist())
    return found


def read_texts(
    lm: LanguageModel, asked: Mapping[int, Prompt], texts: Sequence[Sequence[int]],
    concept_B: Tensor, config: SteerConfig,
) -> Reading:  # fmt: skip
    """How the unsteered network reads texts behind their prompts, whatever they were written for.

    `asked` has prompts by the names of their rows: what is masked of a row depends on its name.
    A concept's sentence is not among what it sees: all arms are read behind the same prompt.
    """
    block = lm.config.backbone.block
    longest = max(
        len(prompt.ids) + len(ids) for prompt, ids in zip(asked.values(), texts, strict=True)
    )
    length = min(-(-longest // block) * block, lm.config.backbone.max_length)
    ids_BT = torch.full((len(texts), length), lm.config.mask_id)
    continued_BT = torch.zeros(ids_BT.shape, dtype=torch.bool)
    for row, (prompt, ids) in enumerate(zip(asked.values(), texts, strict=True)):
        end = len(prompt.ids) + len(ids)
        ids_BT[row, :end] = torch.tensor([*prompt.ids, *ids])
        continued_BT[row, len(prompt.ids) : end] = True
    return read(lm, ids_BT, continued_BT, concept_B, config.seed, list(asked))


def _about(stream: TokenStream, judge: WordJudge, config: SteerConfig) -> list[Prompt]:
    lengths = [config.prompt_tokens] * config.n_about
    return prompts.about(stream, judge.concept.concept_id, lengths, _SPLITS, config.seed)


def _prompt(trial: Trial, arm: Arm, tokenizer: Tokenizer, config: SteerConfig) -> Tensor:
    """The prompt; a concept that is asked for stands between its BOS and its text."""
    ids = list(trial.prompt.ids)
    if arm.name == "prompting":
        concept = trial.judge.concept
        sentence = config.asking.format(name=concept.name, description=concept.description)
        asked = tokenizer.encode(f"{sentence}\n")[: config.asking_tokens]
        at = int(ids[0] == tokenizer.specials.bos_id)
        ids[at:at] = asked
    return torch.tensor(ids)


def _steering(
    lm: LanguageModel, rows: Sequence[Trial], arm: Arm, config: SteerConfig
) -> steering.Steering:
    return steering.steering(lm, [[change(lm, trial.concept_id, arm, config)] for trial in rows])


def change(lm: LanguageModel, concept_id: int, arm: Arm, config: SteerConfig) -> Change:
    """What an arm asks for one concept."""
    suppresses = arm.name == "injection_mask"
    where = config.suppress if suppresses else config.amplify
    return Change(
        known(concept_id), abs(arm.strength), "suppress" if suppresses else "amplify",
        layers=where.at(lm.config.backbone.n_layers), positions=where.positions,
        first_tokens=where.first_tokens,
    )  # fmt: skip
