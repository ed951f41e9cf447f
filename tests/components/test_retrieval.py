"""Retrieval returns distinct texts, nearest first."""

import numpy as np
import pyarrow as pa
import torch

from components import contracts, nearest
from components.retrieval import Retriever
from model.transducer import Transducer


def test_a_text_that_occurs_twice_is_found_once() -> None:
    transducer = Transducer(width=4, hidden_width=6, encoder_width=3).eval()
    state_1D = torch.randn(1, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        query_E = transducer(state_1D)[0].numpy()
    vectors_NE = np.stack([-query_E, query_E, query_E, query_E + 0.5])
    texts = ["far", "the same  words\n", "the same words", "near"]
    rows = [
        {
            "row": row, "chunk_id": 10 + row, "doc_id": "d", "source": "s", "domain": "m",
            "licence": "l", "title": "t", "start": 0, "end": 1, "text": text,
        }
        for row, text in enumerate(texts)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=contracts.INDEX.schema)
    index = nearest.build(vectors_NE, exact_up_to=9, least_recall=1.0, seed=0)
    (found,) = Retriever(index, transducer, table).find(state_1D, k=3)
    assert [source.text.split()[-1] for source in found] == ["words", "near", "far"]
    assert found[0].cosine > 0.9999
