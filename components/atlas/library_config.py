"""What the canonicalise stage is told."""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from components.endpoints import LanguageModelEndpoint, LocalModel
from model.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class NamingConfig(Config):
    """How clusters get their names and descriptions."""

    namer: Literal["language_model", "medoid"]
    """`medoid` takes the member that stands for the others best, and asks no model."""

    language_model: LanguageModelEndpoint = LocalModel()
    describes: bool = False
    """Whether the model also writes the description. The local one cannot: then the description
    lists the members a concept stands for."""

    n_samples: PositiveInt = 2
    """Names drawn from the model for each cluster, beside its members."""

    max_members_shown: PositiveInt = 10
    max_name_tokens: PositiveInt = 10
    length_penalty: Annotated[float, Field(ge=0.0)] = 0.02
    """Taken from a name's cosine for every word beyond two."""

    temperature: Annotated[float, Field(ge=0.0)] = 0.6


class CanonicaliseConfig(Config):
    """From tags to a frozen library of concepts."""

    encoder: str
    sweep: tuple[PositiveInt, ...] = Field(min_length=1)
    """Numbers of clusters that are tried; coherence against them is recorded, the knee is taken."""

    seed: NonNegativeInt = 0
    drop_share: Share = 0.1
    """Share of clusters, the least coherent ones, that are dropped."""

    min_chunks: PositiveInt = 3
    """Tagged chunks a cluster needs."""

    merge_cosine: Share = 0.85
    """Concept cards at least this alike, each among the other's nearest, are one concept."""

    n_neighbours: PositiveInt = 10
    max_prevalence: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    """Concepts on a larger share of the tagged chunks say too little and are dropped."""

    naming: NamingConfig

    @model_validator(mode="after")
    def _sweep_rises(self) -> Self:
        if list(self.sweep) != sorted(set(self.sweep)):
            raise ValueError(f"sweep is {self.sweep}; give rising numbers of clusters")
        return self
