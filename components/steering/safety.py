"""Steering answers without retraining: a group suppressed, a target's concepts amplified (§4.7).

    safety     one group of concepts is suppressed on every prompt, harmful or not
    response   the concepts that a target text has become the group that is amplified

Both say what they cost beside what they did. The changes themselves are functions of concept ids
alone, for whoever steers one text.

Shape suffixes used in this file:
    N text   K known concept   M member of a group   D width of a vector
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from components import prompts
from components.library import KnownConcept
from components.prompts import Prompt
from components.steering.config import ResponseConfig, SafetyConfig, SteerConfig
from components.steering.detector import Detector, Floats
from components.steering.measures import distinct_2, quality
from components.steering.summary import over_groups
from components.steering.trials import read_texts
from components.tokens import TokenStream
from model.directions import ConceptRef, known, steerable
from model.engine import dtype
from model.language_model import LanguageModel
from model.sampling import generate
from model.steering import Action, Change, steering
from model.steering_config import InjectionConfig
from model.tokenizer import Tokenizer

_SPLITS = ("test", "valid", "train")


def group_change(
    lm: LanguageModel, concept_ids: Sequence[int], action: Action, strength: float,
    where: InjectionConfig,
) -> Change:  # fmt: skip
    """One change for a group of known concepts."""
    return Change(
        tuple(ConceptRef("known", concept_id) for concept_id in concept_ids), strength, action,
        layers=where.at(lm.config.backbone.n_layers), positions=where.positions,
        first_tokens=where.first_tokens,
    )  # fmt: skip


def nearest_concepts(
    lm: LanguageModel, detector: Detector, concepts: Sequence[KnownConcept], about: str, n: int
) -> list[KnownConcept]:
    """The concepts whose cards are nearest to a description, nearest first, of those that can be
    steered."""
    cards_KD = detector.vectors([f"{each.name}: {each.description}" for each in concepts])
    cosine_K = cards_KD @ detector.vectors([about])[0]
    ranked = [concepts[place] for place in np.argsort(-cosine_K, kind="stable")]
    return [each for each in ranked if steerable(lm, known(each.concept_id))][:n]


def profile(lm: LanguageModel, detector: Detector, text: str, n: int) -> list[int]:
    """The concepts a text has, surest first: those above their thresholds that can be steered."""
    labels = detector.annotator.label(detector.vectors([text]))[0]
    return [concept_id for concept_id, _ in labels if steerable(lm, known(concept_id))][:n]


@dataclass(frozen=True)
class _Written:
    """Texts of one arm, with what the unsteered network thinks of them."""

    texts: list[str]
    nats: list[float]
    distinct: list[float]


@dataclass(frozen=True)
class Bench:
    """What both trials need."""

    lm: LanguageModel
    detector: Detector
    tokenizer: Tokenizer
    config: SteerConfig

    def written(self, asked: Sequence[Prompt], changes: Sequence[Sequence[Change]]) -> _Written:
        """Continue prompts, each under its changes, with the same random numbers every time."""
        low = dtype(self.config.dtype) == torch.bfloat16
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            traces = generate(
                self.lm,
                [torch.tensor(prompt.ids) for prompt in asked],
                self.config.sampling,
                stop_ids=[self.tokenizer.specials.end_of_turn_id],
                steering=steering(self.lm, changes) if any(changes) else None,
            )
            ids = [trace.generated for trace in traces]
            nothing_B = torch.zeros(len(asked), dtype=torch.int64)
            reading = read_texts(self.lm, dict(enumerate(asked)), ids, nothing_B, self.config)
        plain = [[i for i in row if i not in self.tokenizer.special_names] for row in ids]
        return _Written(
            [self.tokenizer.decode(row) for row in plain], reading.nats_B.tolist(),
            [distinct_2(row) for row in plain],
        )  # fmt: skip

    def compared(
        self, effect: str, before: _Written, after: _Written, effect_before_N: Floats,
        effect_after_N: Floats,
    ) -> dict[str, object]:  # fmt: skip
        """The effect and its cost side by side, paired by prompt."""
        kept = [
            (quality(was, was, d_was), quality(now, was, d_now))
            for was, now, d_was, d_now in zip(
                before.nats, after.nats, before.distinct, after.distinct, strict=True
            )
        ]
        pairs = {
            effect: (effect_before_N.tolist(), effect_after_N.tolist()),
            "quality": ([was for was, _ in kept], [now for _, now in kept]),
            "nll_nats": (before.nats, after.nats),
        }
        found: dict[str, object] = {"n": len(before.texts)}
        for name, (was, now) in pairs.items():
            found[f"{name}_unsteered"] = self._mean(was)
            found[f"{name}_steered"] = self._mean(now)
            found[f"{name}_change"] = self._mean(np.subtract(now, was).tolist())
        return found

    def _mean(self, values: Sequence[float]) -> dict[str, object]:
        return over_groups(range(len(values)), values, self.config)


def suppressed_group(
    bench: Bench, stream: TokenStream, concepts: Sequence[KnownConcept], config: SafetyConfig
) -> dict[str, object]:
    """Suppress a group on prompts about its members: how much of it is left, and the cost.

    `presence` is the detector's probability of the member that a text has most of.
    """
    members = nearest_concepts(bench.lm, bench.detector, concepts, config.about, config.n_members)
    ids_M = [member.concept_id for member in members]
    asked = _prompts_about(stream, ids_M, config.n_prompts, bench.config)
    change = group_change(bench.lm, ids_M, "suppress", config.strength, bench.config.suppress)
    before = bench.written(asked, [[]] * len(asked))
    after = bench.written(asked, [[change]] * len(asked))
    most_N, left_N = (
        bench.detector.presence(written.texts)[:, ids_M].max(axis=1) for written in (before, after)
    )
    return {
        "about": config.about,
        "strength": config.strength,
        "members": [{"concept_id": each.concept_id, "name": each.name} for each in members],
        **bench.compared("presence", before, after, most_N, left_N),
    }


def _prompts_about(
    stream: TokenStream, concept_ids: Sequence[int], n: int, config: SteerConfig
) -> list[Prompt]:
    """Beginnings of chunks labelled with any of the concepts, in turn."""
    each = -(-n // len(concept_ids))
    found = [
        prompt
        for concept_id in concept_ids
        for prompt in prompts.about(
            stream, concept_id, [config.prompt_tokens] * each, _SPLITS, config.seed
        )
    ]
    unique = list({prompt.ids: prompt for prompt in found}.values())[:n]
    if not unique:
        raise ValueError(
            f"no chunk of {config.prompt_tokens} tokens is labelled with any of the concepts "
            f"{list(concept_ids)}; lower prompt_tokens, or describe another group"
        )
    return unique


def steered_to_targets(
    bench: Bench, stream: TokenStream, config: ResponseConfig
) -> dict[str, object]:
    """Amplify each target's own concepts: how near the answers come to it, and the cost.

    A target is what another document says, half the list away: of its own document an opening
    alone would lead there.

    `presence` is the detector's mean probability of the target's concepts, `similarity` the cosine
    of answer and target by the annotator's encoder: neither is the network's own.
    """
    settings, tokenizer = bench.config, bench.tokenizer
    n_prompt, n_new = settings.prompt_tokens, settings.sampling.n_new
    whole = prompts.openings(stream, [n_prompt + n_new] * config.n_targets, "test", settings.seed)
    half = len(whole) // 2
    found = [
        (each, target, mine)
        for each, other in zip(whole, [*whole[half:], *whole[:half]], strict=True)
        for target in [tokenizer.decode(other.ids[n_prompt:])]
        if (mine := profile(bench.lm, bench.detector, target, config.n_concepts))
    ]
    if not found:
        raise ValueError(
            f"none of {len(whole)} held-out openings of {n_prompt + n_new} tokens in one chunk "
            f"has a concept that can be steered; lower prompt_tokens or sampling.n_new"
        )
    asked = [Prompt(p.doc_id, p.domain, p.split, p.ids[:n_prompt]) for p, _, _ in found]
    targets, profiles = [target for _, target, _ in found], [mine for _, _, mine in found]
    changes = [
        [group_change(bench.lm, mine, "amplify", config.strength, settings.amplify)]
        for mine in profiles
    ]
    before, after = bench.written(asked, [[]] * len(asked)), bench.written(asked, changes)
    has_N, gets_N = (
        np.array([
            presence_K[mine].mean()
            for presence_K, mine in zip(bench.detector.presence(w.texts), profiles, strict=True)
        ])
        for w in (before, after)
    )  # fmt: skip
    target_ND = bench.detector.vectors(targets)
    near_N, nearer_N = (
        (bench.detector.vectors(w.texts) * target_ND).sum(axis=1) for w in (before, after)
    )
    return {
        "strength": config.strength,
        "n_concepts": config.n_concepts,
        "n_left_out": len(whole) - len(found),
        **bench.compared("presence", before, after, has_N, gets_N),
        **bench.compared("similarity", before, after, near_N, nearer_N),
    }
