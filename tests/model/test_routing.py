"""Few rows and fewer gradients, and yet the sums and gradients of the straightforward objective."""

import itertools

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import straightforward
from model import forcing
from model.diffusion import fixed, question
from model.forcing import Chances
from model.language_model import LanguageModel
from model.objective import Example, Objective
from model.routing import flops, reads_known, rows, straightforward_flops
from model.terms import Term
from model.train_config import ObjectiveConfig
from tests.model import tiny

TRAINED = (Term.LANGUAGE, Term.CONCEPT, Term.RECONSTRUCTION, Term.INDEPENDENCE)
MIXED = Chances(known=0.5, unknown=0.5, known_dropped=0.3, residual_dropped=0.5)


def example(network, chances=MIXED, *, sparse=False):
    batch = tiny.batch(4)
    return Example(
        batch=batch,
        asked=question(batch, fixed(0.6), 0, 3, network.config),
        forcing=forcing.draw(batch, chances, seed=2, step=3),
        sparse=sparse,
    )


def gradients(network, sums):
    weights = (1.0, 0.7, 1.3, 0.9)
    loss = sum(weight * sums[term] for weight, term in zip(weights, TRAINED, strict=True))
    found = torch.autograd.grad(loss, list(network.parameters()))
    return dict(zip((name for name, _ in network.named_parameters()), found, strict=True))


def assert_equal_to_the_straightforward_objective(network, config, one):
    expected = straightforward.sums(network, config, one)
    found = Objective(network, config)(one)
    for term in (*TRAINED, Term.CONTRIBUTION):
        torch.testing.assert_close(found[term], expected[term], rtol=2e-6, atol=1e-6)
    wanted = gradients(network, expected)
    whole = float(torch.stack([grad.norm() for grad in wanted.values()]).norm())
    for name, grad in gradients(network, found).items():
        off, own = float((grad - wanted[name]).norm()), float(wanted[name].norm())
        assert off <= min(1e-6 * whole, 1e-5 * own + 1e-7), name


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("or_tokens", ["masked", "all"])
@pytest.mark.parametrize("independence", ["known_unknown", "two_term"])
def test_gradients_are_those_of_dense_heads_at_every_position(sparse, or_tokens, independence):
    network = tiny.lm()
    config = ObjectiveConfig(or_tokens=or_tokens, independence=independence)
    one = example(network, sparse=sparse)
    assert_equal_to_the_straightforward_objective(network, config, one)


@pytest.mark.parametrize(
    "changes",
    [
        {"rank": None},
        {"residual": False},
        {"tied": False},
        {"known_bias": False},
        {"family": "ar_concept"},
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_holds_for_every_option_of_the_network(changes, sparse):
    network = tiny.lm(**changes)
    one = example(network, sparse=sparse)
    assert_equal_to_the_straightforward_objective(network, ObjectiveConfig(), one)


@pytest.mark.slow
@pytest.mark.parametrize("certain", list(itertools.product([0.0, 1.0], repeat=4)))
def test_the_same_holds_for_every_pattern_of_forcing_and_dropout(certain):
    network = tiny.lm()
    one = example(network, Chances(*certain))
    assert_equal_to_the_straightforward_objective(network, ObjectiveConfig(), one)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_weight_has_a_gradient_even_where_no_row_asks_for_it(sparse):
    network = tiny.lm()
    one = example(network, Chances(), sparse=sparse)
    one.batch.labelled_C[:] = False
    Objective(network, ObjectiveConfig())(one)[: Term.NLL].sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("sparse", [False, True])
def test_a_step_keeps_nothing_of_tokens_times_concepts(sparse):
    small = tiny.config()
    assert small.bottleneck is not None
    large = small.bottleneck.model_copy(update={"n_known": 2_000, "n_unknown": 6_000})
    network = LanguageModel(small.model_copy(update={"bottleneck": large}))
    one = example(network, sparse=sparse)
    kept = []

    def count(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        Objective(network, ObjectiveConfig())(one)
    assert max(kept) == 2_000 * tiny.WIDTH < int(one.asked.masked_BT.sum()) * 2_000


def test_rows_by_hand():
    batch = tiny.batch(1)
    masked_BT = torch.zeros_like(batch.ids_BT, dtype=torch.bool)
    masked_BT[0, [3, 9, 12]] = True  # in chunk 0, in none, in chunk 1
    everywhere_BT = batch.chunk_BT >= 0
    batch.labelled_C[1] = False
    found = rows(batch, masked_BT, everywhere_BT & masked_BT)
    assert found.place_N.tolist() == [9, 12, 3]
    assert found.masked_M.tolist() == [2, 0, 1]
    assert found.votes.chunk_N.tolist() == [0]
    found = rows(batch, masked_BT, everywhere_BT)
    assert found.place_N.tolist() == [9, 12, 3, 1, 2, 4, 5, 6, 7, 8]
    assert found.n_summed == 3
    assert len(found.votes) == 8


def test_a_forced_token_reads_its_own_concepts_only_without_labels():
    masked_BT = torch.tensor([[True, True], [True, True]])
    drawn = forcing.Forcing(
        known_B=torch.tensor([True, False]),
        unknown_B=torch.tensor([False, False]),
        known_dropped_B=torch.tensor([False, False]),
        residual_dropped_BT=torch.tensor([[True, True], [False, True]]),
    )
    supervised_N = torch.tensor([True, False, True, True])
    assert reads_known(drawn, supervised_N, masked_BT).tolist() == [False, True, False, True]


def counted(network, step):
    """FLOPs of all matrix products of a step, with those that torch's own count leaves out."""

    def added(total, first, second, **_):
        return 2 * first[0] * first[1] * second[1]

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: added}) as counter:
        step(network)
    return counter.get_total_flops()


@pytest.mark.parametrize("rank", [3, None])
def test_products_are_as_many_as_counted_and_half_of_the_straightforward_ones(rank):
    network, config = tiny.lm(rank=rank), ObjectiveConfig()
    one = example(network)
    bare = tiny.lm("cdlm")
    concepts = network.concepts.config

    def step(lm):
        Objective(lm, config)(one)[list(TRAINED)].sum().backward()

    masked_BT = one.asked.masked_BT
    reading = rows(one.batch, masked_BT, masked_BT & (one.batch.chunk_BT >= 0))
    supervised_C = torch.nn.functional.pad(forcing.supervised(one.batch), (0, 1))
    supervised_N = supervised_C[one.batch.chunk_BT[masked_BT]]
    expected = flops(
        concepts,
        tiny.WIDTH,
        n_rows=len(reading.place_N),
        n_masked=reading.n_summed,
        n_voting=len(reading.votes),
        n_graded=int(reads_known(one.forcing, supervised_N, masked_BT).sum()),
    )
    # The independence term is the one other product: forward once, backward once for its one side.
    n_independence = 2 * 2 * masked_BT.numel() * tiny.WIDTH**2
    assert counted(network, step) - counted(bare, step) - n_independence == expected.total


def test_the_known_module_costs_less_than_half_at_the_sizes_of_the_paper():
    network = tiny.config(top_k=4).bottleneck
    assert network is not None
    library = network.model_copy(update={"n_known": 33_732, "n_unknown": 101_196, "rank": 256})
    # Half of 4,096 tokens masked, all of them voting, a tenth without residual and half of these
    # not forced: the end of pretraining.
    ours = flops(library, 256, n_rows=2_048, n_masked=2_048, n_voting=2_048, n_graded=102)
    plain = straightforward_flops(library, 256, 4_096)
    assert plain.known / ours.known > 2.5
    assert plain.unknown / ours.unknown == pytest.approx(12 / 7, rel=0.01)
