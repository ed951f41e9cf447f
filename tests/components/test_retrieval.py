"""Retrieval returns texts, nearest first, with their places and what a cosine means."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from components import contracts, nearest
from components.hashing import HashingEmbedder
from components.index_facts import (
    EncoderFacts,
    IndexFacts,
    Measured,
    Recall,
    SearchFacts,
    Spread,
    TransducerFacts,
    VerbatimFacts,
)
from components.retrieval import Retriever
from model.transducer import Transducer

TEXTS = ["far", "the same words", "near"]


def some_facts(encoder: EncoderFacts, quantiles: tuple[float, ...]) -> IndexFacts:
    """Facts of which only the encoder and the cosines of random pairs are looked at."""
    mean = Measured(value=0.5, low=0.4, high=0.6, n=7, n_groups=5)
    recall = Recall(at_1=mean, at_10=mean, at_100=mean, chance_at_1=0.25)
    spread = Spread(quantiles=quantiles, n_pairs=9)
    return IndexFacts(
        dim=3, n=4, n_chunks=5, n_measured=4, kind="Flat", checkpoint_digest="c",
        transducer_digest="t", encoder=encoder,
        search=SearchFacts(
            true_neighbours=recall, self_at_1=mean, lists_probed=1, n_candidates=9,
            table_bytes=48, refine_bytes=0,
        ),
        verbatim=VerbatimFacts(
            by_text=recall, by_half=recall, by_tokens=None, by_visible_tokens=None
        ),
        transducer=TransducerFacts(
            n_parameters=8, n_fitted=6, cosine_held_out=mean, cosine_held_out_masked=mean,
            recall_held_back=recall, recall_held_back_masked=recall,
        ),
        random_states=spread, random_texts=spread,
    )  # fmt: skip


def some_retriever(vectors_NE: nearest.Floats, transducer: Transducer, digest: str) -> Retriever:
    place = {"chunk_id": 31, "doc_id": "e", "start": 0, "end": 2}
    rows = [
        {
            "row": row, "chunk_id": 10 + row, "doc_id": "d", "source": "s", "domain": "m",
            "licence": "l", "title": "t", "start": 3, "end": 5 + row, "text": text,
            "n_places": 1, "places": [place] * row,
        }
        for row, text in enumerate(TEXTS)
    ]  # fmt: skip
    encoder = EncoderFacts(name="hashing", digest=digest, dim=512, max_wordpieces=256)
    return Retriever(
        nearest.build(vectors_NE, exact_up_to=9, least_recall=1.0, seed=0),
        transducer,
        pa.Table.from_pylist(rows, schema=contracts.INDEX.schema),
        some_facts(encoder, (-1.0, -0.2, 0.1, 0.4)),
    )


def test_sources_come_nearest_first_with_all_places_and_what_a_cosine_means() -> None:
    transducer = Transducer(width=4, hidden_width=6, encoder_width=3).eval()
    state_1D = torch.randn(1, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        query_E = transducer(state_1D)[0].numpy()
    vectors_NE = np.stack([-query_E, query_E, query_E + 0.5])
    (found,) = some_retriever(vectors_NE, transducer, "").find(state_1D, k=9)
    assert [source.text for source in found] == ["the same words", "near", "far"]
    assert found[0].cosine > 0.9999
    assert (found[0].percentile, found[-1].percentile) == (1.0, 0.0)
    assert (found[0].start, found[0].end, found[1].places[1].doc_id) == (3, 6, "e")


def test_a_text_finds_itself_through_the_encoder() -> None:
    encoder = HashingEmbedder()
    retriever = some_retriever(encoder.embed(TEXTS), Transducer(4, 6, 512), encoder.digest)
    near, words = retriever.find_text(["near", "the same words"], k=2)
    assert (near[0].text, words[0].text) == ("near", "the same words")


def test_an_encoder_with_other_weights_is_refused() -> None:
    retriever = some_retriever(HashingEmbedder().embed(TEXTS), Transducer(4, 6, 512), "other")
    with pytest.raises(contracts.ContractError, match=r"cannot be compared.*rerun --from embed"):
        retriever.find_text(["near"], k=1)


def test_no_sources_are_not_asked_for() -> None:
    retriever = some_retriever(HashingEmbedder().embed(TEXTS), Transducer(4, 6, 512), "")
    with pytest.raises(ValueError, match="k is 0; ask for at least one"):
        retriever.find(torch.zeros(1, 4), k=0)


def test_states_of_another_width_and_states_that_are_no_numbers_are_refused() -> None:
    retriever = some_retriever(HashingEmbedder().embed(TEXTS), Transducer(4, 6, 512), "")
    with pytest.raises(ValueError, match=r"states have shape \(2, 5\).* rows of 4"):
        retriever.find(torch.zeros(2, 5), k=1)
    with pytest.raises(ValueError, match="query 1 of 2 holds NaN"):
        retriever.find(torch.tensor([[0.0] * 4, [float("nan")] * 4]), k=1)
