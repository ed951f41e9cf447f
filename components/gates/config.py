"""Bounds of the gates: how much there must be, and how much may be wrong.

The rules themselves are in `suites/` and are not a matter of choice. The defaults suit a corpus of
a few thousand documents; a recipe of forty documents lowers the amounts, never the rules.
"""

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt

from model.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class DocumentBounds(Config):
    """Documents@1."""

    min_documents: PositiveInt = 500
    min_domains: PositiveInt = 5
    min_documents_per_domain_and_split: PositiveInt = 1
    max_control_share: Share = 0.02
    """Control and replacement characters in one document: above, it is binary junk."""


class ChunkBounds(Config):
    """Chunks@1."""

    min_chunks: PositiveInt = 1000
    max_wordpieces: PositiveInt = 256
    """Longest chunk of status `ok`."""

    max_long_share: Share = 0.05
    max_segmentation_error_share: Share = 0.01


class TagBounds(Config):
    """Tags@1."""

    min_tagged_chunks: PositiveInt = 250
    max_parse_failed_share: Share = 0.1
    min_tags_per_chunk: NonNegativeInt = 1
    max_tags_per_chunk: PositiveInt = 40
    min_mean_tags_per_chunk: Annotated[float, Field(gt=0.0)] = 3.0
    max_tag_chars: PositiveInt = 60
    min_distinct_tags: PositiveInt = 300
    max_commonest_tag_share: Share = 0.5
    """Share of tagged chunks that carry the commonest tag."""


class ConceptBounds(Config):
    """Concepts@1."""

    min_concepts: PositiveInt = 150
    max_prevalence: Share = 0.1
    """Of a tone or a document concept: on more chunks it says little and takes the label mass."""

    max_prevalence_of_others: Share = 0.5
    """A content or entity concept on most of the tagged chunks cannot be told from none."""

    min_chunks_per_concept: PositiveInt = 1


class LabelBounds(Config):
    """Labels@1."""

    min_labelled_chunks: PositiveInt = 1000
    min_labels_per_chunk: PositiveInt = 1
    max_labels_per_chunk: PositiveInt = 16
    min_concepts: PositiveInt = 100
    """Concepts that at least one chunk carries."""

    max_commonest_concept_share: Share = 0.5
    """Share of labelled chunks that carry the commonest concept."""


class LiftedBounds(Config):
    """LiftedWords@1."""

    min_words: PositiveInt = 100
    min_concepts: PositiveInt = 20
    min_support: PositiveInt = 1
    max_words_per_concept: PositiveInt = 50


class TokenBounds(Config):
    """Tokens@1."""

    min_train_tokens: PositiveInt = 100_000
    min_domains: PositiveInt = 5
    min_labelled_share: Share = 0.9
    """Tokens of labelled chunks among those of all chunks, split by split."""

    max_concepts_per_span: PositiveInt = 16


class MessageBounds(Config):
    """Messages@1."""

    min_conversations: PositiveInt = 200
    min_distinct_answers: PositiveInt = 100
    """One answer to every question teaches that answer."""

    max_messages: PositiveInt = 100
    """Of one conversation."""

    max_control_share: Share = 0.02
    """Control and replacement characters in one message."""


class CheckConfig(Config):
    """Bounds by contract, and how many bad rows a report names."""

    documents: DocumentBounds = DocumentBounds()
    chunks: ChunkBounds = ChunkBounds()
    tags: TagBounds = TagBounds()
    concepts: ConceptBounds = ConceptBounds()
    labels: LabelBounds = LabelBounds()
    lifted: LiftedBounds = LiftedBounds()
    tokens: TokenBounds = TokenBounds()
    messages: MessageBounds = MessageBounds()

    n_bad_rows: PositiveInt = 20
    """Offending rows named for each broken rule."""
