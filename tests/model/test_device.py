"""Where tensors go, and what ranks talk through."""

import torch

from model.device import backend, moved
from model.engine import PlainEngine
from model.train import example_at
from tests.model import tiny


def test_ranks_talk_through_what_their_devices_know():
    assert backend(torch.device("cpu")) == "gloo"
    assert backend(torch.device("cuda", 1)) == "nccl"


def test_everything_inside_an_example_moves_and_the_rest_stays():
    config = tiny.training()
    example = example_at(tiny.batch(2), PlainEngine(tiny.lm(), config), config, step=0)
    there = moved(example, torch.device("meta"))
    assert there.batch.concepts_CM.device.type == "meta"
    assert there.asked.noisy_BT.shape == example.asked.noisy_BT.shape
    assert there.forcing.known_B.device.type == "meta"
    assert there.sparse is example.sparse
    assert example.batch.ids_BT.device.type == "cpu"
