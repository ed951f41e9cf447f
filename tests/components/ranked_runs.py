"""Small runs over forked ranks that keep savepoints, and go on from the newest one."""

import json

from components import rank as ranks_module
from components import resuming
from components.job import Job
from components.launch import RanksConfig
from components.tokens import TokenStream
from model.train_config import SavingConfig
from model.zero_config import ZeroConfig
from tests.components import interrupted
from tests.components.small_training import train_config
from tests.components.written_tokens import CONCEPTS

EVERY = 3
"""Steps between two savepoints."""


def job(folder, tokens, stage=1, dtype="float32"):
    folder.mkdir(exist_ok=True)
    config, stream = train_config(ranks=2), TokenStream(tokens)
    network = config.network.language_model(
        vocab_size=stream.vocab_size, n_known=len(CONCEPTS), specials=stream.specials
    )
    training = config.training.model_copy(
        update={"saving": SavingConfig(every_steps=EVERY), "log_every": 1, "dtype": dtype}
    )
    return Job(
        tokens=str(tokens),
        folder=str(folder),
        network=network,
        start_from="",
        prevalence=(0.3,) * len(CONCEPTS),
        training=training,
        domain_weights={},
        validation_sequences=6,
        zero=ZeroConfig(stage=stage),
    )


def go(wanted, scratch, *, world=2, killed=0, moment=None):
    """Run from the newest savepoint there; the ranks' exit codes."""
    wanted = resuming.from_newest(wanted, RanksConfig(ranks=world), scratch, lambda event: None)
    return interrupted.ranks(
        world, lambda rank: ranks_module.work(wanted, lambda event: None), killed, moment
    )


def rows(folder):
    return json.loads((folder / "history.json").read_text())["rows"]


def ranks_rows(folder):
    return [row["nll_nats"] for row in rows(folder)]


def left(folder):
    """Curve, a row a step, and weights."""
    return (folder / "history.json").read_text(), (folder / "weights.safetensors").read_bytes()
