"""Questions as they are asked, and answers as they are counted (method §7.2)."""

import math
from pathlib import Path

import pytest

from components import fetch
from components.capability import benchmarks
from components.capability.benchmarks import Choice, Problem
from components.capability.choosing import Chosen, choose
from components.capability.writing import number
from components.examinee import Examinee, Question
from model.conditional_config import ConditionalConfig
from tests.components import reader
from tests.components.capability import packaged


def test_questions_are_asked_in_the_form_of_each_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packaged.write(tmp_path, monkeypatch)
    first, _ = benchmarks.choices("hellaswag")
    assert first == Choice("h0", "Baking: A baker", (" a", " b", " c", " d"), 2)
    (true,) = benchmarks.choices("truthfulqa_mc1")
    assert true == Choice("t0", "Q: Is it so?\nA:", (" Yes.", " No."), 1)
    honey, wings = benchmarks.choices("mmlu_dev")  # five options are no four
    assert honey.context == (
        "The following are questions about bees.\n\nWhat do bees make?\n"
        "A. honey\nB. glass\nC. salt\nD. tin\nAnswer:"
    )
    assert (honey.answers, honey.right) == ((" A", " B", " C", " D"), 0)
    assert (wings.id, wings.right) == ("bees-1", 2)
    (total,) = benchmarks.sums()
    assert total.context == "Question: How many are 2 and 2?\nAnswer:"


def test_a_program_is_the_prompt_what_was_written_and_the_test():
    problem = Problem("x", "def f():\n", "def check(candidate):\n    candidate()", "f")
    assert problem.program("    return 1") == (
        "def f():\n    return 1\n\ndef check(candidate):\n    candidate()\n\ncheck(f)\n"
    )


def chosen(nats: tuple[float, ...], n_bytes: tuple[int, ...], right: int = 0) -> Chosen:
    return Chosen("x", right, nats, (0.0,) * len(nats), n_bytes, n_dropped=0)


def test_length_normalisation_and_soft_score_by_hand():
    one = chosen((math.log(0.1), math.log(0.3)), (10, 2))
    assert not one.is_right
    assert one.is_right_per_byte  # -0.230 a byte against -0.602
    assert one.probability == pytest.approx(0.25)
    assert one.chance == 0.5


def test_choices_are_judged_as_continuations_of_their_question():
    examinee = Examinee(reader.network("ar"), ConditionalConfig())
    asked = [Choice("a", "A bee", (" flies", " x"), 0), Choice("b", "The", (" tide",), 0)]
    first, second = choose(examinee, asked)
    pairs = [Question("A bee", " flies"), Question("A bee", " x"), Question("The", " tide")]
    nats = [one.nats for one in examinee.likelihoods(pairs)]
    assert [*first.nats, *second.nats] == pytest.approx(nats)
    assert first.n_bytes == (6, 2)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("She has 3 and gets 1,204 more.", "1204"),
        ("first 7\n#### 18\nthen 5", "18"),
        ("It costs $4.50.", "4.5"),
        ("That is 10.00", "10"),
        ("-3 degrees", "-3"),
        ("none at all", ""),
    ],
)
def test_the_number_of_an_answer(text: str, wanted: str):
    assert number(text) == wanted


def fetched() -> bool:
    try:
        fetch.need(benchmarks.packages(tuple(benchmarks.PACKAGE_OF)))
    except fetch.NotFetchedError:
        return False
    return True


@pytest.mark.skipif(not fetched(), reason="needs the packages of the benchmarks in the cache")
def test_the_packages_hold_what_is_said_of_them():
    assert [len(benchmarks.choices(name)) for name in ("hellaswag", "truthfulqa_mc1")] == [100, 100]
    assert len(benchmarks.choices("mmlu_dev")) == 281
    assert len(benchmarks.sums()) == 100
    assert len(benchmarks.problems()) == benchmarks.N_HUMANEVAL == 164
