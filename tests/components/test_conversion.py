"""A savepoint for another number of ranks: what goes on from it is what would have gone on."""

import pytest

from components import conversion, savepoints
from components.conversion import convert
from components.savepoints import SavepointError
from components.training_state import Topology
from model.progress import Progress
from tests.components.interrupted import Moment
from tests.components.ranked_runs import go, job, ranks_rows
from tests.components.written_tokens import write_tokens

SPLITS = [
    *((0, "float32"), (1, "float32"), (2, "float32"), (3, "float32")),
    *((1, "bfloat16"), (2, "bfloat16"), (3, "bfloat16")),
]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return write_tokens(tmp_path_factory.mktemp("stream") / "tokens")


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "dtype"), SPLITS)
@pytest.mark.parametrize(("saved", "asked"), [(2, 1), (1, 2)])
def test_a_converted_savepoint_goes_on_over_other_ranks(
    tokens, tmp_path, stage, dtype, saved, asked
):
    straight = job(tmp_path / "straight", tokens, stage, dtype)
    assert go(straight, tmp_path / "none", world=saved) == [0] * saved
    wanted, scratch = job(tmp_path / "run", tokens, stage, dtype), tmp_path / "scratch"
    go(wanted, scratch, world=saved, moment=Moment("components.loader", "Loader.batch", 8))
    with pytest.raises(SavepointError, match=rf"ranks {saved} \(asked: {asked}\)"):
        go(wanted, scratch, world=asked)
    convert(savepoints.listed(scratch)[0].folder, wanted.topology(asked))
    assert go(wanted, scratch, world=asked) == [0] * asked
    first, second = (ranks_rows(folder) for folder in (tmp_path / "straight", tmp_path / "run"))
    tolerance = 1e-6 if dtype == "float32" else 2e-2
    assert second == pytest.approx(first, rel=tolerance)


def keep(wanted, scratch, *, stage, ranks, name):
    """A savepoint without tensors, as so many ranks of a stage leave it."""
    folder = savepoints.attempt(scratch, 4, permanent=False)
    savepoints.begin(folder)
    (folder / name).mkdir()
    (folder / name / "tensors.pt").write_bytes(b"whole")
    topology = Topology(ranks=ranks, zero_stage=stage, micro_batches=1)
    state = wanted.state(Progress(step=4).standing(), ranks, [{"step": 4}])
    return savepoints.commit(folder, state.model_copy(update={"topology": topology}), {})


@pytest.mark.parametrize(("saved", "asked"), [(0, 1), (1, 0), (3, 2), (2, 3), (0, 3)])
def test_another_kind_of_split_is_refused_with_the_way_out(tokens, tmp_path, saved, asked):
    made = keep(job(tmp_path / "run", tokens), tmp_path, stage=saved, ranks=2, name="zero")
    with pytest.raises(SavepointError, match=rf"stage {saved}, which stage {asked} cannot") as it:
        convert(made.folder, Topology(ranks=1, zero_stage=asked, micro_batches=1))
    assert f"--zero-stage {saved}" in str(it.value)
    assert len(savepoints.listed(tmp_path)) == 1


@pytest.mark.parametrize(("stage", "name"), [(0, "zero"), (2, "universal"), (3, "universal")])
def test_what_any_number_of_ranks_can_open_is_copied_under_the_number_asked_for(
    tokens, tmp_path, monkeypatch, capsys, stage, name
):
    made = keep(job(tmp_path / "run", tokens), tmp_path, stage=stage, ranks=2, name=name)
    monkeypatch.setattr("sys.argv", ["conversion", str(made.folder), "--ranks", "5"])
    conversion.main()
    new, old = sorted(savepoints.listed(tmp_path), key=lambda one: -one.state.topology.ranks)
    assert old == made
    savepoints.verify(new.folder)
    assert new.state.topology == Topology(ranks=5, zero_stage=stage, micro_batches=1)
    assert (new.folder / name / "tensors.pt").read_bytes() == b"whole"
    assert str(new.folder) in capsys.readouterr().out
