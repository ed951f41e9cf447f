"""Steering: amplify and suppress concepts, and measure what it did and what it cost (paper §6.2).

Effect is judged from outside the network, by the annotator on the text (`detector`) and by lifted
words (`words`); cost by the unsteered network's loss and by repeats (`measures`). The same trials
on the pretrained checkpoint say what steering training changed. What suits each concept becomes its
calibration (`strengths`).
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from components import contracts
from components.library import known_concepts
from components.steering import judging, safety
from components.steering.config import SteerConfig
from components.steering.detector import Detector, open_detector
from components.steering.measures import Outcome
from components.steering.shifts import shifts
from components.steering.strengths import common_strength, own_strengths
from components.steering.summary import over_groups, summary
from components.steering.trials import Arm, Continued, Trial, arms, run, trials
from components.steering.words import judges
from components.steering_calibration import FACTS_FILE, Facts, columns_of
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model.directions import known, steerable
from model.events import Event, Events, ignore
from model.language_model import LanguageModel


def steer(
    checkpoint: Path,
    pretrained: Path,
    annotator: Path,
    lifted: Path,
    tokens: Path,
    steering: Path,
    calibration: Path,
    config: SteerConfig,
    events: Events = ignore,
) -> int:
    """Run every arm on its trials. Returns the number of texts."""
    digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    contracts.verify(pretrained, contracts.CHECKPOINT)
    lm, stream = checkpoints.load(checkpoint), TokenStream(tokens)
    concepts = known_concepts(checkpoint)
    detector = open_detector(annotator, checkpoint)
    open_detector(annotator, pretrained)  # of the same library, or concepts cannot be compared
    judged = judges(lifted, concepts, config.min_words)
    wanted = trials(
        stream, [one for one in judged if steerable(lm, known(one.concept.concept_id))], config
    )
    before = [Arm("none"), *(Arm("injection", s) for s in config.strengths_before)]
    total = len(arms(config)) + len(before)
    told = _Told(events, total if config.strengths_before else total - len(before))
    after = _Measured(lm, wanted, detector, stream, config, told)
    outcomes = after.outcomes(arms(config), trained=True)
    if config.strengths_before:
        earlier = checkpoints.load(pretrained)
        neutral = [trial for trial in wanted if not trial.about]
        untrained = _Measured(earlier, neutral, detector, stream, config, told)
        outcomes += untrained.outcomes(before, trained=False)
    facts = _calibrate(outcomes, digest, lm, config)
    _write_calibration(outcomes, facts, calibration, config)
    bench = safety.Bench(lm, detector, stream.tokenizer, config)
    found = {
        "concept_score": f"probability by the annotator, on vectors of {detector.encoder.name}",
        "common_strengths": {name: found.model_dump() for name, found in facts.common.items()},
        **summary(outcomes, after.n_equal, config),
        "logit_shifts": [_shift(lm, wanted, strength, config) for strength in config.rising],
        "safety": None if config.safety is None
        else safety.suppressed_group(bench, stream, concepts, config.safety),
        "response": None if config.response is None
        else safety.steered_to_targets(bench, stream, config.response),
    }  # fmt: skip
    (steering / "summary.json").write_text(json.dumps(found, indent=1))
    return contracts.write(map(_row, outcomes), steering, contracts.STEERING_REPORT)


class _Told:
    """Progress, arm by arm."""

    def __init__(self, events: Events, total: int) -> None:
        self._events, self._total, self._step = events, total, 0

    def arm(self, outcomes: Sequence[Outcome]) -> None:
        self._step += 1
        n = len(outcomes)
        means = {
            "concept_score": sum(outcome.concept_score for outcome in outcomes) / n,
            "quality": sum(outcome.quality for outcome in outcomes) / n,
            "nll_nats": sum(outcome.nll_nats for outcome in outcomes) / n,
        }
        self._events(Event(self._step, self._total, means))


class _Measured:
    """One network's arms, run and measured."""

    def __init__(
        self, lm: LanguageModel, wanted: Sequence[Trial], detector: Detector, stream: TokenStream,
        config: SteerConfig, told: _Told,
    ) -> None:  # fmt: skip
        self._lm, self._wanted, self._detector = lm, wanted, detector
        self._tokenizer, self._config, self._told = stream.tokenizer, config, told
        self.n_equal = 0

    def outcomes(self, planned: Sequence[Arm], *, trained: bool) -> list[Outcome]:
        """Texts of all arms; the first is the network left alone."""
        unsteered = self._run(planned[0])
        reference = judging.references(unsteered)
        found: list[Outcome] = []
        for arm in planned:
            texts = unsteered if arm == planned[0] else self._run(arm)
            if arm.strength == 0.0 and arm.name in ("injection", "injection_mask"):
                self.n_equal += n_equal(unsteered, texts, arm)
            mine = judging.outcomes(
                texts, arm, reference, self._detector, self._tokenizer, self._config,
                trained=trained,
            )  # fmt: skip
            self._told.arm(mine)
            found += mine
        return found

    def _run(self, arm: Arm) -> Continued:
        return run(self._lm, self._wanted, arm, self._tokenizer, self._config)


def n_equal(unsteered: Continued, steered: Continued, arm: Arm) -> int:
    """Texts at strength 0, all of them the network's own to the last bit of every logit."""
    own = {
        trial.number: trace for trial, trace in zip(unsteered.trials, unsteered.traces, strict=True)
    }
    for trial, trace in zip(steered.trials, steered.traces, strict=True):
        control = own[trial.number]
        same_text = torch.equal(control.ids_T, trace.ids_T)
        if not (same_text and torch.equal(control.logit_N, trace.logit_N)):
            raise ValueError(
                f"the arm {arm.name} at strength 0 writes another text than the unsteered "
                f"network; are there weights that are not finite?"
            )
    return len(steered.traces)


def _calibrate(
    outcomes: Sequence[Outcome], digest: str, lm: LanguageModel, config: SteerConfig
) -> Facts:
    return Facts(
        checkpoint_digest=digest,
        n_layers=lm.config.backbone.n_layers,
        amplify=config.amplify,
        suppress=config.suppress,
        common={
            "amplify": common_strength(outcomes, "amplify", config),
            "suppress": common_strength(outcomes, "suppress", config),
        },
    )


def _write_calibration(
    outcomes: Sequence[Outcome], facts: Facts, calibration: Path, config: SteerConfig
) -> None:
    amplify = own_strengths(outcomes, "amplify", facts.common["amplify"], config)
    suppress = own_strengths(outcomes, "suppress", facts.common["suppress"], config)
    (calibration / FACTS_FILE).write_text(facts.model_dump_json(indent=1))
    rows = [
        {
            "concept_id": concept_id, "kind": "known",
            **columns_of(amplify[concept_id], "amplify"),
            **columns_of(suppress[concept_id], "suppress"),
        }
        for concept_id in sorted(amplify)
    ]  # fmt: skip
    contracts.write(rows, calibration, contracts.CALIBRATION)


def _shift(
    lm: LanguageModel, wanted: Sequence[Trial], strength: float, config: SteerConfig
) -> dict[str, object]:
    found = shifts(lm, wanted, strength, config)
    concepts = [shift.concept_id for shift in found]
    columns = {
        "rank_correlation": [shift.rank_correlation for shift in found],
        "slope": [shift.slope for shift in found],
        "top_logits": [shift.top_logits for shift in found],
    }
    means = {name: over_groups(concepts, values, config) for name, values in columns.items()}
    return {"strength": strength, "n": len(found), **means}


def _row(outcome: Outcome) -> dict[str, object]:
    concept = outcome.trial.judge.concept
    return {
        "concept_id": concept.concept_id,
        "name": concept.name,
        "prevalence": concept.prevalence,
        "prompt_id": outcome.trial.prompt_id,
        "about": outcome.trial.about,
        "steering_trained": outcome.trained,
        "arm": outcome.arm.name,
        "strength": outcome.arm.strength,
        "concept_score": outcome.concept_score,
        "word_score": outcome.word_score,
        "quality": outcome.quality,
        "harmonic_mean": outcome.harmonic_mean,
        "nll_nats": outcome.nll_nats,
        "distinct_2": outcome.distinct_2,
        "repetition": outcome.repetition,
        "judged_concept": outcome.judged_concept,
        "judged_quality": outcome.judged_quality,
        "text": outcome.text,
    }
