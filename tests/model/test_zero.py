"""What DeepSpeed is told. That it then trains the plain loop's weights: test_training."""

import pytest

from model.zero import settings
from tests.model import tiny


def test_a_batch_is_shared_over_ranks_and_micro_batches():
    found = settings(tiny.training(micro_batches=3), 2, world=2)
    assert found["train_micro_batch_size_per_gpu"] == 1
    assert found["gradient_accumulation_steps"] == 3
    assert found["bf16"] == {"enabled": False}


def test_a_batch_that_cannot_be_shared_is_refused_with_one_that_can():
    with pytest.raises(ValueError, match=r"batch_sequences is 6, which 4 ranks.*try 8"):
        settings(tiny.training(), 1, world=4)
