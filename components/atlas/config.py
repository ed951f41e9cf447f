"""What each stage of Atlas is told."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from components.atlas.shard_config import ShardConfig
from components.cutting_config import CutConfig
from components.endpoints import LanguageModelEndpoint, LocalModel
from model.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ChunkConfig(CutConfig):
    """How documents are cut."""

    code_domains: tuple[str, ...] = ("code",)
    """Documents of these domains are cut between definitions."""


class EmbedConfig(ShardConfig):
    """How chunks are encoded."""

    HOW: ClassVar[tuple[str, ...]] = ("engine", "shard_chunks")

    encoder: str
    """`minilm-int8`, `hashing`, `static:FOLDER`, or a sentence-transformers model by name or
    path."""

    batch_chunks: PositiveInt = 1_024
    """Texts of like length among them are encoded together, which saves padding."""

    shard_chunks: PositiveInt = 16_384
    """Encoded by one worker at a time. All shards end in one file: any number gives the same."""


class TagConfig(Config):
    """How a sample of chunks is tagged."""

    tagger: Literal["language_model", "phrases"]
    """`phrases` takes the telling phrases of each passage and asks no model."""

    encoder: str
    """Finds examples for a passage and tags that drifted from it; the chunks' encoder."""

    n_train: PositiveInt = 260
    """Tagged chunks of the training split: the library and the annotator come from these."""

    n_held_out: NonNegativeInt = 45
    """Tagged chunks of the validation split, on which annotators are compared."""

    n_by_phrases: NonNegativeInt = 0
    """Further chunks of the training split, tagged by phrases that recur among them and by no
    model. They cost little and make a larger library; with fewer than 40 no phrase recurs."""

    language_model: LanguageModelEndpoint = LocalModel()
    asks_for_kinds: bool = False
    """Whether the model types its tags. The local one cannot; then a rule does (tags.py)."""

    max_passage_chars: PositiveInt = 300
    """What the model reads of a chunk, from its start."""

    max_tags_asked: PositiveInt = 6
    max_answer_tokens: PositiveInt = 96
    temperature: Annotated[float, Field(ge=0.0)] = 0.5
    n_retries: NonNegativeInt = 2
    """Further attempts, with other seeds, at an answer that cannot be read."""

    min_similarity: float = 0.2
    """Cosine to its chunk under which a tag counts as drifted."""

    fill_to: PositiveInt = 8
    """Chunks left with fewer tags get phrases of the passage up to this many."""

    max_tags: PositiveInt = 20
    seed: int = 0
