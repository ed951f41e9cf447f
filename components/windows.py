"""Which windows of a token stream an optimisation asks about, beside those it trains on in turn."""

from dataclasses import replace

import numpy as np

from components.job import Job
from components.tokens import TokenStream
from model import chat
from model.diffusion import Batch


def held_out(job: Job, stream: TokenStream) -> list[Batch]:
    """Fixed windows of the validation split, spread evenly over it."""
    length, size = job.training.length, job.training.batch_sequences
    n_windows = stream.n_windows("valid", length)
    n_wanted = min(n_windows, job.validation_sequences)
    places = np.linspace(0, n_windows - 1, n_wanted).round().astype(np.int64)
    return [
        asked_of(stream.batch("valid", length, places[start : start + size]), job, stream)
        for start in range(0, n_wanted, size)
    ]


def asked_of(batch: Batch, job: Job, stream: TokenStream) -> Batch:
    """The batch, with what may be asked for where its sequences are conversations."""
    if job.trained_eos is None:
        return batch
    answers = chat.answers(batch.ids_BT, stream.tokenizer, job.trained_eos)
    return replace(batch, answers=answers)
