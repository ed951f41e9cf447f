"""A text steered beside itself: what changed is told by both texts, and nothing else is."""

from dataclasses import replace

import pytest
import torch

from components.explaining.opened import find_concepts
from components.explaining.reading import distinct_2, read, repeated
from components.explaining.schema import ExplainOptions, GenerateRequest, Wish
from components.explaining.steered import steer
from components.explaining.vocabulary import UnknownConceptError
from components.explaining.writing import write
from components.steering_calibration import Calibration, Facts, Strength
from model import continuation
from model.directions import ConceptRef
from model.sampling_config import SamplingConfig
from model.steering_config import InjectionConfig

REQUEST = GenerateRequest(prompt="there was some", sampling=SamplingConfig(n_new=10))
OPTIONS = ExplainOptions(input_targets=0, top_sources=1, draws=10)


def wish(concept, action="amplify", strength=None, replacement=""):
    return Wish(concept=concept, action=action, strength_logits=strength, replacement=replacement)


@pytest.fixture(scope="module")
def found(opened):
    return steer(opened, REQUEST, [wish("rain", strength=30.0)], OPTIONS)


def test_amplification_brings_the_concepts_words_into_the_text(found):
    (effect,) = found.effects
    assert effect.signed_share_after > effect.signed_share_before + 0.1
    assert found.after.generation.text != found.before.generation.text
    assert found.after.generation.steered
    assert not found.before.generation.steered


def test_cost_and_presence_are_those_that_the_steering_stage_would_read(opened):
    (written,) = write(opened, [REQUEST])
    ids_1T = written.trace.ids_T[None, : written.trace.end]
    continued_1T = (torch.arange(ids_1T.shape[1]) >= written.trace.n_prompt)[None]
    wanted = continuation.read(opened.lm, ids_1T, continued_1T, torch.tensor([4]), seed=6)
    told = read(opened, written.trace, seed=6)
    assert told.quality.loss_nats_per_token == pytest.approx(float(wanted.nats_B[0]), rel=1e-5)
    assert told.presence("known", 4) == pytest.approx(float(wanted.presence_B[0]), rel=1e-5)


def test_edits_lead_from_one_text_to_the_other(found):
    assert "".join(edit.before for edit in found.edits) == found.before.generation.text
    assert "".join(edit.after for edit in found.edits) == found.after.generation.text
    assert sum(edit.n_before_tokens for edit in found.edits) == len(found.before.tokens)
    assert 0 < found.changed_tokens_share <= 1


def test_strength_zero_leaves_the_text_and_says_so(opened):
    same = steer(opened, REQUEST, [wish("rain", strength=0.0)], OPTIONS)
    assert same.changed_tokens_share == 0
    assert same.before.generation.text == same.after.generation.text
    assert same.quality_before == same.quality_after
    (effect,) = same.effects
    assert effect.presence_before == effect.presence_after
    assert "stayed as it was" in same.notes[-1]


def test_every_concept_of_a_group_and_of_a_replacement_is_told(opened):
    wishes = [wish("rain", "replace", 9.0, "bread + root"), wish("unknown 3", "suppress", 2.0)]
    told = steer(opened, REQUEST, wishes, OPTIONS).effects
    assert [(one.concept.name, one.action) for one in told] == [
        ("rain", "suppress"), ("bread", "amplify"), ("root", "amplify"),
        ("unknown 3", "suppress"),
    ]  # fmt: skip
    assert all(one.strength_from == "given" for one in told)


def test_a_strength_that_nobody_gave_or_measured_is_said_to_be_a_default(opened):
    told = steer(opened, REQUEST, [wish("rain")], OPTIONS)
    assert told.effects[0].strength_from == "default"
    assert "no strength was calibrated" in told.notes[0]


def calibrated():
    def strength(logits, source):
        return Strength(logits=logits, source=source, harmonic_mean=0.5, low=0.4, high=0.6, n=7)

    common = {"amplify": strength(6.0, "common"), "suppress": strength(3.0, "common")}
    facts = Facts(
        checkpoint_digest="c", n_layers=2, amplify=InjectionConfig(), suppress=InjectionConfig(),
        common=common,
    )  # fmt: skip
    return Calibration(facts, {(ConceptRef("known", 0), "amplify"): strength(11.0, "own")})


def test_strengths_are_those_of_the_calibration_and_it_is_said_whose(opened):
    measured = replace(opened, calibration=calibrated())
    asked = [
        [wish("rain"), wish("bread", "suppress")],
        [wish("root", "replace", None, "rain")],
        [wish("rain", strength=2.0)],
    ]
    told = [steer(measured, REQUEST, wishes, OPTIONS) for wishes in asked]
    strengths = [
        (one.strength_logits, one.strength_from, one.strength_n_texts)
        for each in told
        for one in each.effects
    ]
    assert strengths == [
        (11.0, "calibrated", 7), (3.0, "common", 7), (11.0, "calibrated", 7),
        (11.0, "calibrated", 7), (2.0, "given", 0),
    ]  # fmt: skip
    assert [each.notes for each in told] == [(), (), ()]
    found = find_concepts(measured, "", 2)
    assert [one.calibrated_logits for one in found] == [11.0, None]


def test_an_unknown_concept_is_refused_before_anything_is_written(opened):
    with pytest.raises(UnknownConceptError, match="Did you mean violin"):
        steer(opened, REQUEST, [wish("violins")], OPTIONS)
    with pytest.raises(ValueError, match="nothing is to change"):
        steer(opened, REQUEST, [], OPTIONS)


def test_a_concept_that_raises_no_token_is_refused_by_its_name(opened):
    with pytest.raises(ValueError, match=r"violin: known concept 2 raises no token's logit"):
        steer(opened, REQUEST, [wish("rain"), wish("violin")], OPTIONS)


@pytest.mark.parametrize("strength", [1e9, -1.0])
def test_a_strength_out_of_range_is_refused_with_the_range(strength):
    with pytest.raises(ValueError, match=r"a shift in logits from 0 to 100"):
        wish("rain", strength=strength)


def test_only_a_replacement_names_another_concept():
    with pytest.raises(ValueError, match="needs a replacement"):
        wish("rain", "replace")
    with pytest.raises(ValueError, match="only replace takes one"):
        wish("rain", "suppress", replacement="bread")


def test_repetition_by_hand():
    assert distinct_2([1, 2, 1, 2, 3]) == 3 / 4
    assert distinct_2([7]) == 1.0
    assert repeated([1, 2, 3, 4, 1, 2, 3, 4]) == 1 / 8
    assert repeated([1, 1, 1, 1, 1, 1]) == 2 / 6
    assert repeated([]) == 0.0


@pytest.mark.parametrize(
    "wishes",
    [
        [wish("rain", strength=3.0), wish("rain", "suppress", 3.0)],
        [wish("rain", "replace", 3.0, replacement="rain")],
        [wish("rain + rain", strength=3.0)],
    ],
)
def test_a_concept_cannot_change_in_two_ways(opened, wishes):
    with pytest.raises(ValueError, match="rain is named 2 times"):
        steer(opened, REQUEST, wishes, OPTIONS)
