"""Questions in text become sequences, and sequences answers (method §5, §7.3)."""

import math

import pytest
import torch

from components.examinee import Examinee, Question, Wish
from model.conditional_config import ConditionalConfig
from model.config import Family
from model.sampling import generate
from model.sampling_config import SamplingConfig
from tests.components import reader

LONG = "A river that is far too long for a small network"


def examinee(family: Family = "cdlm_concept", **changes: object) -> Examinee:
    return Examinee(reader.network(family), ConditionalConfig.model_validate(changes))


def plain_log_probability(asked: Examinee, context: str, continuation: str) -> float:
    lm, encode = asked.network.lm, asked.network.tokenizer.encode
    ids_T = torch.tensor([lm.config.bos_id, *encode(context), *encode(continuation)])
    n = len(encode(continuation))
    with torch.no_grad():
        log_TV = lm(ids_T[None])[0].log_softmax(-1)
    return float(log_TV[-n - 1 : -1].gather(1, ids_T[-n:, None]).sum())


def test_a_left_to_right_network_gives_its_plain_log_probabilities():
    asked = examinee("ar")
    (one,) = asked.likelihoods([Question("A bee makes", " honey")])
    assert one.nats == pytest.approx(
        plain_log_probability(asked, "A bee makes", " honey"), abs=1e-4
    )
    assert (one.n_tokens, one.standard_error_nats, one.n_dropped) == (6, 0.0, 0)


def test_one_token_is_exact_and_what_could_follow_sums_to_one():
    asked = examinee()
    letters = [bytes([byte]).decode() for byte in range(128)]
    found = asked.likelihoods([Question("The tide", letter) for letter in letters])
    assert {one.n_samples for one in found} == {0}
    total = sum(math.exp(one.nats) for one in found)
    assert 0 < total <= 1 + 1e-5


def test_spaces_before_a_continuation_belong_to_it():
    asked = examinee(order="left_to_right")
    after, before = asked.likelihoods([Question("A bee ", "flies"), Question("A bee", " flies")])
    assert after.n_tokens == before.n_tokens == len(" flies")
    assert after.nats == pytest.approx(before.nats)


def test_a_context_that_is_too_long_loses_its_beginning_and_is_counted():
    asked = examinee("ar")
    cut, whole = asked.likelihoods([Question(LONG, " runs"), Question("A", " runs")])
    assert cut.n_dropped == len(LONG) + len(" runs") - reader.LENGTH
    assert whole.n_dropped == 0
    (same,) = asked.likelihoods([Question("The end of it: " + LONG, " runs")])
    assert same.nats == pytest.approx(cut.nats, abs=1e-4)


def test_a_long_text_is_read_in_windows_that_count_each_token_once():
    asked = examinee("ar")
    (one,) = asked.likelihoods([Question("", LONG * 2)])
    assert (one.n_tokens, one.n_windows, one.n_dropped) == (96, 6, 0)
    uniform = examinee()
    with torch.no_grad():
        uniform.network.lm.embedding.weight.zero_()
    (one,) = uniform.likelihoods([Question("", LONG * 2)])
    assert one.nats == pytest.approx(-96 * math.log(uniform.network.tokenizer.vocab_size))


def test_special_tokens_that_a_text_spells_out_are_text():
    asked = examinee()
    (one,) = asked.likelihoods([Question("<|bos|>", "<|mask|>")])
    assert one.n_tokens == len("<|mask|>")


def test_any_unicode_is_read_and_an_empty_continuation_is_certain():
    asked = examinee()
    pair, half, nothing = asked.likelihoods(
        [Question("日", "😀"), Question("\ud83d", "\udc00 a"), Question("a", "")]
    )
    assert (pair.n_tokens, half.n_tokens) == (4, 5)
    assert (nothing.nats, nothing.n_tokens) == (0.0, 0)
    assert asked.greedy([Question("a", "")]) == [True]


@pytest.mark.parametrize("family", ["ar", "cdlm"])
def test_what_is_written_is_greedy(family: Family):
    asked = examinee(family)
    (one,) = asked.continued([Wish("The heart", (), 12)])
    lm, ids = asked.network.lm, asked.network.tokenizer.encode("The heart")
    (trace,) = generate(lm, torch.tensor([[lm.config.bos_id, *ids]]), SamplingConfig(n_new=12))
    assert one.text == asked.network.tokenizer.decode(trace.generated)
    assert one.n_tokens == 12


def test_a_text_ends_before_its_first_stop_string():
    asked = examinee()
    (whole,) = asked.continued([Wish("The heart", (), 12)])
    stop = whole.text[3:5]
    (one,) = asked.continued([Wish("The heart", ("never said", stop), 12)])
    assert one.text == whole.text[: whole.text.index(stop)]
    assert one.ended
    assert one.n_tokens < whole.n_tokens


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_neither_the_batch_nor_its_size_changes_a_text(temperature: float):
    wishes = [
        Wish(context, ("q",), n_new, temperature, 0.9, draw)
        for context, n_new, draw in [("A bee", 9, 0), ("A bee", 9, 1), ("Tides follow", 5, 0)]
    ]
    together = examinee(rows=8).continued(wishes)
    alone = [examinee(rows=1).continued([wish])[0] for wish in wishes]
    assert together == alone
    if temperature:
        assert together[0].text != together[1].text


def test_a_long_context_leaves_half_of_the_room_to_what_is_written():
    (one,) = examinee("ar").continued([Wish(LONG, (), 300)])
    assert (one.n_tokens, one.n_dropped) == (reader.LENGTH // 2, len(LONG) - reader.LENGTH // 2)


def test_damaged_weights_are_named():
    asked = examinee("ar")
    with torch.no_grad():
        asked.network.lm.embedding.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="are the network's weights damaged"):
        asked.likelihoods([Question("a", "b")])
