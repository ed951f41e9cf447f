"""Measuring one point: the budget is spent, the loss is held-out, the bytes repeat."""

import json
from pathlib import Path

import pytest

from components import contracts
from components.scaling.config import LadderConfig, PointTraining, ScalePoint, Size
from components.scaling.ladder import plan
from components.scaling.point import _known, measure
from model.config import Family
from model.train_config import OptimConfig
from tests.components.written_tokens import write_concepts, write_tokens
from tests.model import tiny

TRAINING = PointTraining(
    length=32, block=8, batch_sequences=4, optim=OptimConfig(peak_lr=3e-3), rank=3, dtype="float32"
)


def point(family: Family, budget_flops: float = 6e7) -> ScalePoint:
    (found,) = plan(
        LadderConfig(
            families=(family,), budgets_flops=(budget_flops,), training=TRAINING,
            sizes=(Size(width=16, n_layers=1, n_heads=2, n_kv_heads=1, mlp_width=24),),
            evaluation_tokens=300,
        )
    )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("data")
    return write_tokens(folder / "tokens"), write_concepts(folder / "concepts")


def measured(data: tuple[Path, Path], folder: Path, config: ScalePoint) -> dict[str, object]:
    folder.mkdir()
    measure(*data, folder, config)
    return contracts.json_file(folder, "run.json")


def test_a_point_writes_the_curve_of_its_budget(data, tmp_path):
    config = point("cdlm_concept")
    run = measured(data, tmp_path / "curve", config)
    rows = contracts.read(tmp_path / "curve", contracts.CURVE).to_pylist()
    assert rows[-1]["tokens"] == run["n_tokens"]
    assert rows[-1]["flops"] == pytest.approx(run["flops"])
    assert rows[-1]["valid_nll_nats"] is not None
    assert run["flops"] == pytest.approx(6e7, rel=0.15)
    assert set(run["final"]) == {
        "nll_nats_per_token_fixed_rate_0.5",
        "nll_nats_per_token_grid_9_rates",
    }


def test_a_smaller_library_drops_the_rarer_labels_and_no_others():
    batch = tiny.batch()
    kept = _known(batch, 3)
    before, after = batch.concepts_CM, kept.concepts_CM
    assert (after[(before >= 0) & (before < 3)] == before[(before >= 0) & (before < 3)]).all()
    assert (after[before >= 3] == -1).all()
    assert (before >= 3).any()
    assert (kept.labelled_C == batch.labelled_C).all()


def test_the_ar_family_is_measured_by_its_own_likelihood(data, tmp_path):
    run = measured(data, tmp_path / "curve", point("ar"))
    assert list(run["final"]) == ["nll_nats_per_token_autoregressive"]


def test_more_compute_lowers_the_held_out_loss(data, tmp_path):
    short = measured(data, tmp_path / "short", point("cdlm"))
    long = measured(data, tmp_path / "long", point("cdlm", budget_flops=6e8))
    key = "nll_nats_per_token_grid_9_rates"
    assert long["final"][key]["value"] < short["final"][key]["value"] - 0.3


def test_the_same_point_gives_the_same_bytes(data, tmp_path):
    for name in ("one", "two"):
        measured(data, tmp_path / name, point("cdlm_concept"))
    digests = [contracts.manifest_of(tmp_path / name).digest for name in ("one", "two")]
    assert digests[0] == digests[1]
    assert json.loads((tmp_path / "one" / "run.json").read_text())["name"] == (
        "cdlm_concept-6e07-w16x1-s0"
    )
