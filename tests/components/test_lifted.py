import pytest
import torch

from components import contracts, lifted

ROWS = [
    {"concept_id": 0, "token_id": 8, "log_odds": 2.5, "support": 4},
    {"concept_id": 0, "token_id": 3, "log_odds": 1.5, "support": 9},
    {"concept_id": 2, "token_id": 5, "log_odds": 0.5, "support": 3},
]


@pytest.fixture
def folder(tmp_path):
    contracts.write(ROWS, tmp_path, contracts.LIFTED_WORDS)
    return tmp_path


def test_words_come_by_concept_best_first(folder):
    assert lifted.log_odds(folder, 3) == [{8: 2.5, 3: 1.5}, {}, {5: 0.5}]


def test_rarer_concepts_have_the_better_odds_and_wordless_ones_none(folder):
    table = lifted.table(folder, (0.25, 0.5, 0.01))
    assert table.words_KW.tolist() == [[8, 3], [-1, -1], [5, -1]]
    torch.testing.assert_close(table.odds_K, torch.tensor([2.0, 0.0, 10.0]))


def test_words_of_another_library_are_refused(folder):
    with pytest.raises(contracts.ContractError, match=r"words of concepts \[2\]"):
        lifted.log_odds(folder, 2)
