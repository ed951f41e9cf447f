"""What the canonicalise stage is told."""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from components.endpoints import LanguageModelEndpoint, LocalModel
from model.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Kind = Literal["content", "document", "entity", "tone"]


class NamingConfig(Config):
    """How groups of tags get their names and descriptions."""

    namer: Literal["language_model", "medoid"]
    """`medoid` asks no model: the name is a member, or a title of the vocabulary."""

    language_model: LanguageModelEndpoint = LocalModel()
    follows_instructions: bool = False
    """Whether the model answers instructions in JSON. Then it also describes groups, refuses those
    without a common meaning, says which alike concepts are one, and checks parents. The local one
    cannot: it completes examples, and embeddings decide the rest."""

    vocabulary: Literal["none", "encyclopedia"] = "none"
    """Titles that are proposed as names beside the members: names that people chose."""

    n_samples: PositiveInt = 2
    """Names drawn from a model that completes examples, for each group."""

    max_members_shown: PositiveInt = 10
    n_random_members_shown: NonNegativeInt = 0
    """Shown to a model beside the commonest ones, so that it sees how far a group reaches."""

    max_name_tokens: PositiveInt = 10
    max_answer_tokens: PositiveInt = 600
    """Of a model that follows instructions: a card, or how a community of concepts falls apart."""

    length_penalty: Annotated[float, Field(ge=0.0)] = 0.02
    """Taken from a name's cosine for every word beyond two."""

    temperature: Annotated[float, Field(ge=0.0)] = 0.6
    least_noun: Share = 0.0
    """Groups whose best name is less like a noun phrase, 0 to 1, are dropped. Not for a model that
    follows instructions."""

    least_coherent: Annotated[int, Field(ge=1, le=5)] = 3
    """Groups that a model which follows instructions rates lower, of 1 to 5, are dropped."""


class CanonicaliseConfig(Config):
    """From tags to a frozen library of concepts."""

    encoder: str
    sweep: tuple[PositiveInt, ...] = Field(min_length=1)
    """Numbers of clusters that are tried; coherence against them is recorded, the knee is taken."""

    seed: NonNegativeInt = 0
    sweep_tags: PositiveInt = 200_000
    """With more unique tags the curve is taken on a sample of this many."""

    n_iterations: PositiveInt = 10
    points_per_centroid: PositiveInt = 64
    """Tags that k-means is fitted to, for each cluster; all are assigned."""

    min_tag_chunks: PositiveInt = 1
    """Chunks that a tag needs to have a say in what clusters there are. Rarer ones are left out:
    most are slips of the tagger."""

    drop_share: Share = 0.1
    """Share of clusters, the least coherent ones, that are dropped."""

    min_chunks: PositiveInt = 3
    """Tagged chunks a cluster needs."""

    merge_cosine: Share = 0.85
    """Concept cards at least this alike, each among the other's nearest, may be one concept."""

    n_neighbours: PositiveInt = 10
    max_prevalence: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    """Concepts of the capped kinds on a larger share of the tagged chunks are dropped: they say
    too little and take most of the label mass."""

    capped_kinds: tuple[Kind, ...] = ("tone", "document")
    naming: NamingConfig

    @model_validator(mode="after")
    def _sweep_rises(self) -> Self:
        if list(self.sweep) != sorted(set(self.sweep)):
            raise ValueError(f"sweep is {self.sweep}; give rising numbers of clusters")
        return self
