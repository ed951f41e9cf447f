"""Two ranks under DeepSpeed train what one process trains (performance.md G14).

Every stage, accumulation, overlap, offload and recomputation, with heads tied or not, on shares of
the batch that differ much (`tests.model.parity`). Both sides step with torch's AdamW. Gradients are
clipped in every step, so that their norms count too: Adam alone forgives any factor.
"""

from dataclasses import replace
from itertools import product

import pytest
import torch

from components import launch
from model.engine import PlainEngine
from model.events import ignore
from model.objective import counts
from model.terms import Term
from model.train import example_at
from model.zero_config import ZeroConfig
from tests.model import parity, tiny
from tests.model.parity import Case, Job

STAGES = (0, 1, 2, 3)
SPLIT = (1, 2, 3)


def zero(stage, **changes):
    """Small as the tests' network is, all of it is split at stage 3."""
    return ZeroConfig(stage=stage, whole_elements=0, **changes)


def cases():
    """The matrix in float32, then every other option once a stage."""
    for stage, n, tied, overlap in product(STAGES, (1, 2, 4), (True, False), (True, False)):
        if stage or not overlap:
            split = zero(stage, overlap=overlap)
            yield Case(micro_batches=n, network={"tied": tied}, zero=split)
    for stage in STAGES:
        for family in ("ar", "cdlm", "ar_concept"):
            yield Case(family=family, micro_batches=2, zero=zero(stage))
        yield Case(network={"residual": False, "rank": None}, zero=zero(stage))
        yield Case(micro_batches=2, zero=zero(stage, activation_checkpointing=True))
        yield Case(micro_batches=2, poisoned=(3, 4, 9), zero=zero(stage))
        yield Case(micro_batches=2, steered=True, zero=zero(stage))
        yield Case(micro_batches=2, steered=True, measured=True, zero=zero(stage))
    for stage in SPLIT:
        yield Case(micro_batches=2, zero=zero(stage, offload="optimizer"))
    yield Case(micro_batches=2, zero=zero(3, offload="optimizer_and_parameters"))


def low_cases():
    """In bfloat16, where float32 master weights must be kept and gradients summed in float32."""
    for stage, n, tied in product(SPLIT, (1, 2, 4), (True, False)):
        split = zero(stage, overlap=not tied, activation_checkpointing=n == 2)
        yield Case(dtype="bfloat16", micro_batches=n, network={"tied": tied}, zero=split)
    for stage in SPLIT:
        yield Case(dtype="bfloat16", zero=zero(stage, offload="optimizer"))
        measured = {"dtype": "bfloat16", "micro_batches": 2, "measured": True}
        split = zero(stage, activation_checkpointing=True)
        yield Case(**measured, network={"tied": True}, zero=split)


CASES, LOW_CASES = tuple(cases()), tuple(low_cases())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What two ranks made of every case, one after the other: starting them costs seconds."""
    folder = tmp_path_factory.mktemp("parity")
    everything = (*CASES, *LOW_CASES)
    (folder / "job.json").write_text(Job(cases=everything).model_dump_json())
    ranks = launch.RanksConfig(ranks=2, threads=1)
    launch.run("tests.model.parity", folder / "job.json", ranks, ignore)
    return {case.name: torch.load(folder / f"{i}.pt") for i, case in enumerate(everything)}


@pytest.fixture(scope="module")
def alone():
    """What one process makes of a case, each trained once: how it is split is left out."""
    known = {}

    def found(case):
        whole = case.model_copy(update={"zero": ZeroConfig(), "micro_batches": 1})
        if whole.name not in known:
            known[whole.name] = parity.plain(whole)
        return known[whole.name]

    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_two_ranks_train_what_one_process_trains(trained, alone, case):
    theirs, ours = trained[case.name], alone(case)
    assert theirs["skipped"] == ours["skipped"] == len(case.poisoned)
    torch.testing.assert_close(theirs["losses"], ours["losses"], rtol=1e-6, atol=0.0)
    their_norms, our_norms = (found["norms"][found["norms"].isfinite()] for found in (theirs, ours))
    torch.testing.assert_close(their_norms, our_norms, rtol=1e-5, atol=0.0)
    for name, weight in ours["weights"].items():
        torch.testing.assert_close(theirs["weights"][name], weight, rtol=0.0, atol=1e-5)


MEASURED = [case for case in (*CASES, *LOW_CASES) if case.measured]


@pytest.mark.slow
@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case.name)
def test_two_ranks_measure_the_terms_of_one_process_and_train_as_if_they_had_not(
    trained, alone, case
):
    told = trained[case.name]["told"]
    assert [len(norms) for norms in told] == ([3, 4, 3, 4] if case.steered else [4, 4, 4, 4])
    for theirs, ours in zip(told, alone(case)["told"], strict=True):
        tolerance = 1e-4 if case.dtype == "float32" else 5e-2
        assert theirs == pytest.approx(ours, rel=tolerance)
    unmeasured = trained[case.model_copy(update={"measured": False}).name]
    for key in ("losses", "norms", "weights"):
        torch.testing.assert_close(trained[case.name][key], unmeasured[key], rtol=0.0, atol=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("case", LOW_CASES, ids=lambda case: case.name)
def test_two_ranks_in_low_precision_stay_near_one_process(trained, alone, case):
    theirs, ours = trained[case.name], alone(case)
    torch.testing.assert_close(theirs["losses"], ours["losses"], rtol=2e-2, atol=0.0)
    torch.testing.assert_close(theirs["norms"], ours["norms"], rtol=1e-1, atol=0.0)


@pytest.mark.parametrize("family", ["cdlm_concept", "ar_concept"])
def test_two_ranks_are_asked_what_one_is_asked(family):
    case = Case(family=family)
    engine, batch = PlainEngine(tiny.lm(family), case.training), parity.batch_at(3)
    whole = example_at(batch, engine, case.training, 3)
    for rank in range(2):
        rows = slice(rank, None, 2)
        share = example_at(batch.part(rows), engine, case.training, 3)
        assert torch.equal(share.asked.noisy_BT, whole.asked.noisy_BT[rows])
        assert torch.equal(share.asked.rate_BT, whole.asked.rate_BT[rows])
        assert torch.equal(share.forcing.known_B, whole.forcing.known_B[rows])
        dropped_BT = whole.forcing.residual_dropped_BT[rows]
        assert torch.equal(share.forcing.residual_dropped_BT, dropped_BT)


def test_the_ranks_of_the_matrix_count_unequally_and_together_as_one():
    case, lm, batch = Case(), tiny.lm(), parity.batch_at(1)
    engine = PlainEngine(lm, case.training)

    def counted(rows):
        example = example_at(batch.part(rows), engine, case.training, 1)
        return counts(example, lm, case.training.objective)

    first, second = counted(slice(0, None, 2)), counted(slice(1, None, 2))
    assert torch.equal(first + second, counted(slice(None)))
    assert first[Term.NLL] > 2 * second[Term.NLL]


@pytest.mark.parametrize(
    ("changes", "sequences", "steered"),
    [
        pytest.param({}, 6, False, id="as ever"),
        pytest.param({"rank": None}, 6, False, id="dense unknown head"),
        pytest.param({"residual": False}, 6, False, id="no residual"),
        pytest.param({"tied": False, "known_bias": False}, 6, False, id="own head, no bias"),
        pytest.param({}, 0, False, id="nothing to ask"),
        pytest.param({}, 6, True, id="steering step"),
        pytest.param({}, 0, True, id="steering step, nothing to ask"),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_weight_has_a_gradient_in_every_kind_of_step(changes, sequences, steered, sparse):
    """One without would be stepped along its last gradient at stage 3, and left alone by torch."""
    case, lm = Case(steered=steered), tiny.lm(**changes)
    step = parity.N_STEPS // 4
    batch = parity.batch_at(step)
    batch.ids_BT[sequences:] = tiny.SPECIALS.pad_id
    engine = PlainEngine(lm, case.training)
    example = replace(
        example_at(batch, engine, case.training, step, parity.LIFTED if steered else None),
        sparse=sparse,
    )
    assert (example.aim is not None) is steered
    engine.sums(example)[:6].sum().backward()
    assert [name for name, one in lm.named_parameters() if one.grad is None] == []
