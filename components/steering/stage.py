"""Steering: amplify and suppress concepts, and measure what it did and what it cost (paper §6.2).

concept_score   probability of the concept by its lifted words: no judgement of the network's own
quality         distinct-2: share of the continuation's token pairs that are not repeats
nll_nats        of the continuation, by the unsteered network at rate 0.5
"""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import torch

from components import contracts
from components.library import known_concepts
from components.steering.config import SteerConfig
from components.steering.summary import Outcome, summary
from components.steering.trials import Arm, Continued, Trial, arms, run, trials
from components.steering.words import judges
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model.events import Event, Events, ignore
from model.tokenizer import Tokenizer


def steer(
    checkpoint: Path,
    lifted: Path,
    tokens: Path,
    steering: Path,
    config: SteerConfig,
    events: Events = ignore,
) -> int:
    """Run every arm on every trial. Returns the number of rows."""
    contracts.verify(checkpoint, contracts.CHECKPOINT)
    lm, stream = checkpoints.load(checkpoint), TokenStream(tokens)
    wanted = trials(stream, judges(lifted, known_concepts(checkpoint), config.min_words), config)
    outcomes: list[Outcome] = []
    unsteered: list[Continued] = []
    n_equal = 0
    planned = arms(config)
    for step, arm in enumerate(planned, start=1):
        found = run(lm, wanted, arm, stream.specials.end_of_turn_id, config)
        unsteered = unsteered or found
        if arm.strength == 0.0:
            n_equal += _n_equal(unsteered, found, arm)
        outcomes += _outcomes(wanted, found, arm, stream.tokenizer)
        events(Event(step, len(planned), _means(outcomes[-len(wanted) :])))
    (steering / "summary.json").write_text(json.dumps(summary(outcomes, n_equal, config), indent=1))
    return contracts.write(map(_row, outcomes), steering, contracts.STEERING_REPORT)


def _n_equal(unsteered: Sequence[Continued], found: Sequence[Continued], arm: Arm) -> int:
    """Texts at strength 0, all of them the network's own to the last bit of every logit."""
    n_equal = 0
    for control, steered in zip(unsteered, found, strict=True):
        for one, other in zip(control.traces, steered.traces, strict=True):
            same_text = torch.equal(one.ids_T, other.ids_T)
            if not (same_text and torch.equal(one.logit_N, other.logit_N)):
                raise ValueError(
                    f"the arm {arm.name} at strength 0 writes another text than the unsteered "
                    f"network; are there weights that are not finite?"
                )
            n_equal += 1
    return n_equal


def _outcomes(
    wanted: Sequence[Trial], found: Sequence[Continued], arm: Arm, tokenizer: Tokenizer
) -> Iterator[Outcome]:
    traces = [trace for continued in found for trace in continued.traces]
    nats = torch.cat([continued.reading.nats_B for continued in found]).tolist()
    presence = torch.cat([continued.reading.presence_B for continued in found]).tolist()
    for row, trial in enumerate(wanted):
        text_ids = [i for i in traces[row].generated if i not in tokenizer.special_names]
        yield Outcome(
            trial=trial,
            arm=arm,
            concept_score=trial.judge.score(text_ids),
            presence=presence[row],
            quality=distinct_2(text_ids),
            nll_nats=nats[row],
            text=tokenizer.decode(text_ids),
        )


def distinct_2(token_ids: Sequence[int]) -> float:
    """Share of neighbouring pairs that occur for the first time; 0 where there is no pair."""
    pairs = list(pairwise(token_ids))
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    n = len(outcomes)
    return {
        "concept_score": sum(outcome.concept_score for outcome in outcomes) / n,
        "quality": sum(outcome.quality for outcome in outcomes) / n,
        "nll_nats": sum(outcome.nll_nats for outcome in outcomes) / n,
    }


def _row(outcome: Outcome) -> dict[str, object]:
    concept = outcome.trial.judge.concept
    return {
        "concept_id": concept.concept_id,
        "name": concept.name,
        "prevalence": concept.prevalence,
        "prompt_id": outcome.trial.prompt_id,
        "arm": outcome.arm.name,
        "strength": outcome.arm.strength,
        "concept_score": outcome.concept_score,
        "quality": outcome.quality,
        "nll_nats": outcome.nll_nats,
        "text": outcome.text,
    }
