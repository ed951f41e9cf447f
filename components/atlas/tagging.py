"""A sample of chunks gets free-form tags (paper §4, Atlas stage one: high recall, any wording).

    sample → tags of a language model, or phrases → normalised and typed → without those that
    drifted from their passage → filled up with phrases where few are left

Redundant and odd wordings are for stage two. `sample.json` says which chunks were tagged, which of
them come from the validation split, which answers could not be read, and what it took.

Shape suffixes: N passages   D width of a vector
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from components import contracts, embedding
from components.accounts import Account
from components.atlas import asking, phrases, sampling, vectors
from components.atlas.asking import Said
from components.atlas.config import TagConfig
from components.atlas.sampling import Passage, Sample
from components.atlas.tags import Tag, typed
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
    sample = sampling.draw(documents, chunks, config.n_train, config.n_held_out, config.seed)
    if not sample.train:
        raise ValueError(
            f"{chunks} has no chunk of the train split with {sampling.FEWEST_WORDPIECES} word "
            f"pieces or more, so there is nothing to tag; give the corpus more text and run "
            f"`clearstory rerun --from ingest`"
        )
    passages = sample.passages
    encoder = embedding.load(config.encoder)
    passage_ND = vectors.read(vectors_folder, encoder).rows(
        [passage.chunk_id for passage in passages]
    )
    if config.tagger == "language_model":
        said = asking.ask(passages, passage_ND, encoder, config, events)
    else:
        said = Said([[] for _ in passages], [], Account())
    near = _near(said.tags, passage_ND, encoder, config)
    found = _filled(near, passages, passage_ND, encoder, config)
    account = _account(sample, found, said, config)
    (tags / SAMPLE_FILE).write_text(json.dumps(account, indent=1))
    rows = (
        {"chunk_id": passage.chunk_id, "tag": each.text, "kind": each.kind}
        for passage, of_passage in zip(passages, found, strict=True)
        for each in of_passage
    )
    return contracts.write(rows, tags, contracts.TAGS)


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
