"""From continued trials to measured texts: detector, words, losses, and a judge where one is.

Shape suffixes used in this file:
    N text   K known concept
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from components.steering import asking
from components.steering.asking import Asked
from components.steering.config import SteerConfig
from components.steering.detector import Detector
from components.steering.measures import Outcome, distinct_2, quality, repetition
from components.steering.trials import Arm, Continued, Trial
from model.tokenizer import Tokenizer

References = Mapping[tuple[int, ...], float]
"""Loss of unsteered texts, in nats per token, by the prompt they continue."""


def references(unsteered: Continued) -> References:
    """What the network's own texts cost it, behind each prompt."""
    found: defaultdict[tuple[int, ...], list[float]] = defaultdict(list)
    for trial, nats in zip(unsteered.trials, unsteered.nats, strict=True):
        found[trial.prompt.ids].append(nats)
    return {ids: float(np.mean(nats)) for ids, nats in found.items()}


def outcomes(
    found: Continued, arm: Arm, reference: References, detector: Detector, tokenizer: Tokenizer,
    config: SteerConfig, *, trained: bool,
) -> list[Outcome]:  # fmt: skip
    """Every trial's text with all that is measured of it."""
    written = [
        [i for i in trace.generated if i not in tokenizer.special_names] for trace in found.traces
    ]
    texts = [tokenizer.decode(ids) for ids in written]
    presence_NK = detector.presence(texts)
    others = _others(found.trials)
    asked = [
        Asked(tokenizer.decode(trial.prompt.ids), text, trial.judge.concept)
        for trial, text in zip(found.trials, texts, strict=True)
    ]
    rated = asking.rate(asked, config.judge)
    return [
        Outcome(
            trial=trial,
            arm=arm,
            trained=trained,
            concept_score=float(presence_NK[row, trial.concept_id]),
            other_score=float(presence_NK[row, others[trial.concept_id]]),
            word_score=trial.judge.score(written[row]),
            presence=found.presence[row],
            quality=quality(found.nats[row], reference[trial.prompt.ids], distinct_2(written[row])),
            nll_nats=found.nats[row],
            distinct_2=distinct_2(written[row]),
            repetition=repetition(written[row]),
            judged_concept=rated[row].concept,
            judged_quality=rated[row].quality,
            text=texts[row],
        )
        for row, trial in enumerate(found.trials)
    ]


def _others(trials: Sequence[Trial]) -> dict[int, int]:
    """For each concept the one half the list away: of another prevalence, and not steered."""
    ids = list(dict.fromkeys(trial.concept_id for trial in trials))
    return {one: ids[(place + len(ids) // 2) % len(ids)] for place, one in enumerate(ids)}
