from pathlib import Path

import pytest
import torch

from benchmarks import shakespeare
from benchmarks.shakespeare import AR, FAMILIES
from model import accounting
from model.language_model import LanguageModel

OWN_TEXTS = Path(__file__).parents[1] / "data"


@pytest.fixture
def text(tmp_path):
    """The texts of the other tests, one after the other."""
    path = tmp_path / "input.txt"
    files = sorted(OWN_TEXTS.glob("*/*.txt"))
    path.write_text("".join(file.read_text() for file in files))
    return shakespeare.read(path)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_has_the_parameters_of_the_recipe(family):
    assert 0.79e6 < accounting.parameters(shakespeare.network(family, 65)).total < 0.81e6


def test_a_network_that_knows_nothing_pays_the_logarithm_of_its_vocabulary(text):
    lm = LanguageModel(shakespeare.network(AR, text.n_characters))
    torch.nn.init.zeros_(lm.embedding.weight)
    found = shakespeare.measure(lm, AR, text, n_windows=1)
    assert found.nats_per_token == pytest.approx(float(torch.tensor(text.n_characters + 5).log()))
    assert found.n_tokens == found.n_sequences * shakespeare.CONTEXT


@pytest.mark.slow
def test_the_plain_loop_ends_where_the_training_loop_ends(text):
    ours = shakespeare.train(AR, text, 3)
    plain = shakespeare.train_plainly(text, 3)
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_without_the_text_nothing_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("CLEARSTORY_SHAKESPEARE", str(tmp_path / "none.txt"))
    shakespeare.main()
    assert capsys.readouterr().out.startswith("skipped: no text at")


@pytest.mark.slow
def test_next_tokens_are_easier_than_blocks_and_blocks_than_windows(text):
    ar, window, block = (
        shakespeare.measure(shakespeare.train(family, text, 200), family, text, n_windows=960)
        for family in FAMILIES
    )
    assert ar.nats_per_token + 0.1 < block.nats_per_token
    assert block.nats_per_token < window.nats_per_token
