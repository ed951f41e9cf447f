"""A sample of chunks gets free-form tags (paper §4, Atlas stage one: high recall, any wording).

    sample → tags of a language model, or phrases → normalised and typed → without those that
    drifted from their passage → filled up with phrases where few are left
    further chunks, if any → phrases that recur among them

Redundant and odd wordings are for stage two. `sample.json` says which chunks were tagged, which of
them come from the validation split, which are further ones that phrases alone tagged, which answers
could not be read, and what it took.

Shape suffixes: N passages   D width of a vector
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from components import contracts, embedding
from components.accounts import Account
from components.atlas import asking, phrases, sampling, vectors
from components.atlas.asking import Said
from components.atlas.config import TagConfig
from components.atlas.sampling import Passage, Sample
from components.atlas.tags import Tag, typed
from components.atlas.vectors import ChunkVectors
from components.embedding import Embedder, Floats
from model.events import Events, ignore

SAMPLE_FILE = "sample.json"


def tag(
    documents: Path, chunks: Path, vectors_folder: Path, tags: Path, config: TagConfig,
    events: Events = ignore,
) -> int:  # fmt: skip
    """Tag a stratified sample. Returns the number of tags; rows come in chunk order.

    Raises ValueError where the training split has no chunk that could be tagged.
    """
    sample = sampling.draw(
        documents, chunks, config.n_train, config.n_held_out, config.seed, config.n_by_phrases
    )
    if not sample.train:
        raise ValueError(
            f"{chunks} has no chunk of the train split with {sampling.FEWEST_WORDPIECES} word "
            f"pieces or more, so there is nothing to tag; give the corpus more text and run "
            f"`clearstory rerun --from ingest`"
        )
    passages = sample.passages
    encoder = embedding.load(config.encoder)
    read = vectors.read(vectors_folder, encoder)
    passage_ND = read.rows([passage.chunk_id for passage in passages])
    if config.tagger == "language_model":
        said = asking.ask(passages, passage_ND, encoder, config, events)
    else:
        said = Said([[] for _ in passages], [], Account())
    near = _near(said.tags, passage_ND, encoder, config)
    found = _filled(near, passages, passage_ND, encoder, config)
    account = _account(sample, found, said, config)
    further: dict[int, list[Tag]] = {}
    if config.n_by_phrases:
        further = by_phrases(sample.further, read, encoder, config)
        account = joined(account, further)
    (tags / SAMPLE_FILE).write_text(json.dumps(account, indent=1))
    tags_of = dict(zip((passage.chunk_id for passage in passages), found, strict=True)) | further
    rows = (
        {"chunk_id": chunk_id, "tag": each.text, "kind": each.kind}
        for chunk_id in sorted(tags_of)
        for each in tags_of[chunk_id]
    )
    return contracts.write(rows, tags, contracts.TAGS)


def by_phrases(
    passages: Sequence[Passage], read: ChunkVectors, encoder: Embedder, config: TagConfig
) -> dict[int, list[Tag]]:
    """Tags by chunk of passages that no model is asked about: phrases that recur among them."""
    texts = [passage.text for passage in passages]
    passage_ND = read.rows([passage.chunk_id for passage in passages])
    found = phrases.recurring_of(texts, passage_ND, encoder, config.fill_to)
    return {
        passage.chunk_id: typed(((text, "") for text in chosen), passage.text)
        for passage, chosen in zip(passages, found, strict=True)
    }


def joined(account: dict[str, object], further: Mapping[int, Sequence[Tag]]) -> dict[str, object]:
    """What `sample.json` says of the sample, and of chunks beside it that phrases tagged."""
    tagged = account["tagged"]
    assert isinstance(tagged, list), f"a list of chunk ids, not {tagged!r}"
    by_phrases = [chunk_id for chunk_id, tags in further.items() if tags]
    return account | {
        "tagged": sorted([*tagged, *by_phrases]),
        "tagged_by_phrases": by_phrases,
        "n_without_recurring_phrase": len(further) - len(by_phrases),
        "n_tags_of_phrases": sum(len(tags) for tags in further.values()),
    }


def _near(
    said: Sequence[Sequence[Tag]], passage_ND: Floats, encoder: Embedder, config: TagConfig
) -> list[list[Tag]]:
    """Tags that are like their passage, the likest first: small models drift and repeat."""
    unique = sorted({tag.text for tags in said for tag in tags})
    vectors_ND = encoder.embed(unique)
    row_of = {text: row for row, text in enumerate(unique)}
    kept = []
    for tags, passage_D in zip(said, passage_ND, strict=True):
        cosine = {tag.text: float(vectors_ND[row_of[tag.text]] @ passage_D) for tag in tags}
        near = [tag for tag in tags if cosine[tag.text] >= config.min_similarity]
        kept.append(sorted(near, key=lambda tag: -cosine[tag.text])[: config.max_tags])
    return kept


def _filled(
    near: Sequence[list[Tag]], passages: Sequence[Passage], passage_ND: Floats, encoder: Embedder,
    config: TagConfig,
) -> list[list[Tag]]:  # fmt: skip
    """Chunks with few tags get phrases of their own beside them."""
    short = [at for at, tags in enumerate(near) if len(tags) < config.fill_to]
    found = phrases.tags_of(
        [passages[at].text for at in short], passage_ND[short], encoder, config.fill_to
    )
    filled = [list(tags) for tags in near]
    for at, texts in zip(short, found, strict=True):
        seen = {tag.text for tag in near[at]}
        new = [tag for tag in typed(((text, "") for text in texts), passages[at].text)
               if tag.text not in seen]  # fmt: skip
        filled[at] += new[: config.fill_to - len(near[at])]
    return filled


def _account(
    sample: Sample, found: Sequence[Sequence[Tag]], said: Said, config: TagConfig
) -> dict[str, object]:
    passages = sample.passages
    local = config.tagger == "language_model"
    return {
        "tagged": [passage.chunk_id for passage, tags in zip(passages, found, strict=True) if tags],
        "held_out": [passage.chunk_id for passage in sample.held_out],
        "parse_failed": [passages[at].chunk_id for at in said.unread],
        "untaggable": [
            passage.chunk_id for passage, tags in zip(passages, found, strict=True) if not tags
        ],
        "model": config.language_model.name if local else config.tagger,
        "kinds_by": "model" if local and config.asks_for_kinds else "rule",
        "n_tags_of_model": sum(len(tags) for tags in said.tags),
        # What all the answers took, whether asked for now or kept: the same in every run.
        **asdict(said.took),
    }
