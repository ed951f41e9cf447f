"""Ranks under DeepSpeed that are killed, poisoned, or asked for in another number."""

import random
import signal

import pytest
import torch

from components import rank as ranks_module
from components import resuming, savepoints
from components.launch import RanksConfig
from model.train_config import SavingConfig
from model.zero import ZeroEngine
from tests.components import interrupted
from tests.components.interrupted import Moment
from tests.components.ranked_runs import go, job, left, rows
from tests.components.written_tokens import write_tokens

pytestmark = pytest.mark.chaos
N_KILLS = 20
MOMENTS = [
    ("components.loader", "Loader.batch", 9),
    ("model.hashed_file", "HashedFile.write", 40),
    ("components.savepoints", "commit", 2),
    ("components.savepoints", "_write_durably", 4),
    ("components.savepoints", "tidy", 2),
]
"""Where a rank is killed: function, and up to which of its calls."""


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return write_tokens(tmp_path_factory.mktemp("stream") / "tokens")


def test_twenty_kills_at_random_moments_change_nothing(tokens, tmp_path):
    straight = job(tmp_path / "straight", tokens)
    assert go(straight, tmp_path / "none") == [0, 0]
    draw, n_kills, n_runs = random.Random(0), 0, 0
    while n_kills < N_KILLS:
        wanted = job(tmp_path / f"run-{n_runs}", tokens)
        scratch = tmp_path / f"scratch-{n_runs}"
        while True:
            module, name, most = draw.choice(MOMENTS)
            moment = Moment(module, name, draw.randint(1, most))
            before = [one.step for one in savepoints.listed(scratch)]
            codes = go(wanted, scratch, killed=draw.randint(0, 1), moment=moment)
            if codes == [0, 0]:
                break
            n_kills += 1
            assert interrupted.KILLED in codes
            after = [one.step for one in savepoints.listed(scratch)]
            assert max(after, default=0) >= max(before, default=0)
        assert left(tmp_path / f"run-{n_runs}") == left(tmp_path / "straight")
        n_runs += 1


def test_an_annealed_branch_shares_the_trunk_and_decays_by_itself(tokens, tmp_path):
    trunk, scratch = job(tmp_path / "trunk", tokens), tmp_path / "scratch"
    saving = SavingConfig(keep_every=6)
    trunk = trunk.model_copy(
        update={"training": trunk.training.model_copy(update={"saving": saving})}
    )
    assert go(trunk, scratch) == [0, 0]
    (kept,) = savepoints.listed(scratch)
    annealed = trunk.training.annealed(str(kept.folder), kept.step, 3)
    branch = job(tmp_path / "branch", tokens).model_copy(update={"training": annealed})
    assert go(branch, tmp_path / "other") == [0, 0]
    whole, short = (rows(tmp_path / name) for name in ("trunk", "branch"))
    assert short[:6] == whole[:6]
    assert [row["step"] for row in short] == list(range(1, 10))
    assert short[6]["lr"] == whole[6]["lr"] > short[7]["lr"] > short[8]["lr"]


@pytest.mark.parametrize(
    ("stage", "dtype"),
    [*((stage, "float32") for stage in range(4)), (1, "bfloat16"), (3, "bfloat16")],
)
def test_one_infinite_loss_on_one_rank_changes_no_weight_on_any(tokens, tmp_path, stage, dtype):
    poisoned = job(tmp_path / "poisoned", tokens, stage, dtype)

    def work(rank):
        calls, sums, step = 0, ZeroEngine.sums, ZeroEngine.step

        def flawed(engine, example):
            nonlocal calls
            calls += 1
            found_S = sums(engine, example)
            return found_S + float("inf") if calls == 4 and rank == 1 else found_S

        def watched(engine, lr):
            before = [p.detach().clone() for p in engine.finished().parameters()]
            norm = step(engine, lr)
            after = engine.finished().parameters()
            engine.lm.train()
            if engine.rank == 0:
                same = all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
                assert same == (calls == 4), (calls, norm)
            return norm

        ZeroEngine.sums, ZeroEngine.step = flawed, watched
        ranks_module.work(poisoned, lambda event: None)

    assert interrupted.ranks(2, work, 0, None) == [0, 0]
    assert '"n_skipped": 1' in (tmp_path / "poisoned" / "history.json").read_text()


def test_asked_to_stop_all_ranks_leave_together_with_a_savepoint(tokens, tmp_path):
    wanted, scratch = job(tmp_path / "run", tokens), tmp_path / "scratch"
    moment = Moment("components.loader", "Loader.batch", 5, signal.SIGTERM)
    wanted = resuming.from_newest(wanted, RanksConfig(ranks=2), scratch, lambda event: None)

    def work(rank):
        if rank == 1:
            moment.arm()
        ranks_module.work(wanted, lambda event: None)

    assert interrupted.ranks(2, work, 0, None) == [1, 1]
    assert savepoints.listed(scratch)[0].step == 5
