"""What Atlas takes for each chunk, tag or cluster: ranges, each with where it comes from.

The numbers are in `atlas_rates.json` beside this file: write your own there.
"""

import json
from pathlib import Path
from typing import Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from model.config import Config
from pipelines.cost import Range
from pipelines.recipes import nearest

RATES = Path(__file__).with_name("atlas_rates.json")


class Rate(Config):
    """One range."""

    low: NonNegativeFloat
    high: PositiveFloat
    unit: str
    source: str
    measured: bool
    """Whether it was measured with this code."""

    @property
    def range(self) -> Range:
        return Range(self.low, self.high)

    @model_validator(mode="after")
    def _range_rises(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low is {self.low}, above high {self.high}; swap them in {RATES}")
        return self


class Rates(Config):
    """All of them."""

    pieces_per_chunk: Rate
    encoder_utilisation: Rate
    tag_prompt_tokens: Rate
    tag_answer_tokens: Rate
    prompt_price: Rate
    answer_price: Rate
    answer_rate: Rate
    unique_tags: Rate
    tags_per_chunk: Rate
    tag_pieces: Rate
    cluster_flops: Rate
    naming_tokens: Rate
    label_cells: Rate
    static_chunks: Rate
    labels_per_chunk: Rate
    label_bytes: Rate
    chunk_bytes: Rate
    cores_per_device: Rate


class Encoder(Config):
    """What encoding takes, by the encoder's size."""

    width: PositiveInt
    parameters: float = Field(ge=0.0)
    """Those that a word piece meets, without the embedding; 0: a table, a core does it."""

    source: str


ENCODERS = {
    "minilm-int8": Encoder(
        width=384, parameters=10.6e6,
        source="all-MiniLM-L6-v2: 6 layers of 12 · 384² weights; counted as on an accelerator",
    ),
    "Qwen/Qwen3-Embedding-0.6B": Encoder(
        width=1_024, parameters=0.44e9,
        source="its card: 0.6e9 parameters, 0.44e9 without the embedding; 1,024 wide",
    ),
    "static": Encoder(
        width=384, parameters=0.0,
        source="components/static_encoder.py, learned from MiniLM",
    ),
}  # fmt: skip


def rates() -> Rates:
    """Every rate of the file."""
    return Rates.model_validate(json.loads(RATES.read_text()))


def encoder(name: str) -> Encoder:
    """The encoder of this name. Raises ValueError with the nearest name."""
    known = name.partition(":")[0]
    if known not in ENCODERS:
        raise ValueError(
            f"The size of encoder {name!r} is not known. {nearest(name, sorted(ENCODERS))}"
        )
    return ENCODERS[known]
