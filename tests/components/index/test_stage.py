"""The index holds training chunks and nothing else, finds them, and knows whose states it reads."""

from pathlib import Path

import numpy as np
import pytest

from components import contracts, retrieval
from components.contracts import ContractError
from components.index.config import BuildConfig
from components.index.stage import build
from components.index.states import StateReader
from components.index_facts import IndexFacts
from components.nearest_config import LayoutConfig
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from tests.components.explained_run import Run, write_checkpoint, write_run

CONFIG = BuildConfig(
    length=64, n_fitted=100, n_held_back=10, n_held_out=8, hidden_width=32, n_steps=150,
    batch_pairs=32, lr=3e-3, batch_sequences=4, n_verbatim=18, bootstrap_draws=40,
    layout=LayoutConfig(recall_queries=20),
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"))


def built(run: Run, folder: Path, config: BuildConfig = CONFIG) -> Path:
    folder.mkdir()
    corpus = run.corpus
    build(run.checkpoint, run.tokens, corpus.documents, corpus.chunks, run.vectors, folder, config)
    return folder


@pytest.fixture(scope="module")
def index(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(run, tmp_path_factory.mktemp("index") / "index")


def test_rows_are_the_training_chunks_with_their_text_and_source(run: Run, index: Path) -> None:
    rows = contracts.read(index, contracts.INDEX).to_pylist()
    documents = contracts.read(run.corpus.documents, contracts.DOCUMENTS).to_pylist()
    text_of = {row["doc_id"]: row["text"] for row in documents if row["split"] == "train"}
    assert [row["row"] for row in rows] == list(range(72))
    assert {row["doc_id"] for row in rows} == set(text_of)
    for row in rows:
        assert text_of[row["doc_id"]][row["start"] : row["end"]] == row["text"]
        assert (row["source"], row["licence"]) == ("made-up", "CC0-1.0")


def facts_of(index: Path) -> IndexFacts:
    return IndexFacts.model_validate_json((index / "index.json").read_bytes())


def test_a_reloaded_index_finds_every_vector_first_and_all_true_neighbours(index: Path) -> None:
    facts = facts_of(index)
    assert facts.search.self_at_1.value == facts.search.true_neighbours.at_100.value == 1.0
    assert (facts.search.true_neighbours.at_10.n, facts.n, facts.n_chunks) == (20, 72, 72)
    assert "not influence" in facts.claims


def test_inverted_lists_replace_exact_search_where_there_are_many(run: Run, tmp_path: Path) -> None:
    layout = CONFIG.layout.model_copy(update={"exact_up_to": 40, "least_recall": 0.9})
    config = CONFIG.model_copy(update={"layout": layout})
    assert facts_of(built(run, tmp_path / "index", config)).kind == "IVF1,Flat"


def test_chunks_are_found_by_their_own_text_and_tokens(index: Path) -> None:
    verbatim = facts_of(index).verbatim
    assert verbatim.by_text.at_1.value == 1.0
    assert verbatim.by_half.at_10.value > 0.5
    assert verbatim.by_tokens is not None
    assert verbatim.by_tokens.at_1.value >= 0.8  # some are made of the same words
    assert verbatim.by_visible_tokens is not None
    assert verbatim.by_visible_tokens.at_1.value <= verbatim.by_tokens.at_1.value


def test_states_of_chunks_lead_to_those_chunks(run: Run, index: Path) -> None:
    lm, stream = checkpoints.load(run.checkpoint), TokenStream(run.tokens)
    reader = StateReader(lm, stream, CONFIG)
    states, _ = reader.whole_chunks("train", reader.windows("train"), 40)
    found = retrieval.open_index(index, run.checkpoint).find(states.clean_ND, k=3)
    hits = [
        chunk_id in [source.chunk_id for source in sources]
        for chunk_id, sources in zip(states.chunk_id_N.tolist(), found, strict=True)
    ]
    assert np.mean(hits) > 0.5  # 3 of 72 by chance


def test_quality_of_the_transducer_is_measured_on_chunks_it_never_saw(index: Path) -> None:
    measured = facts_of(index).transducer
    assert (measured.recall_held_back.at_10.n, measured.cosine_held_out.n) == (10, 8)
    assert measured.recall_held_back.chance_at_1 == 1 / 72
    assert measured.cosine_held_out.low <= measured.cosine_held_out.value


def test_the_masked_state_is_of_tokens_that_were_not_to_be_seen(run: Run) -> None:
    reader = StateReader(checkpoints.load(run.checkpoint), TokenStream(run.tokens), CONFIG)
    states, _ = reader.whole_chunks("train", reader.windows("train"), 30)
    shares = [
        len(visible) / len(ids) for visible, ids in zip(states.visible_ids, states.ids, strict=True)
    ]
    assert 0.3 < np.mean(shares) < 0.7
    assert max(shares) < 1.0
    assert not np.allclose(states.clean_ND, states.masked_ND, atol=0.1)


def test_states_are_learned_from_of_chunks_that_are_half_inside(run: Run) -> None:
    lm, stream = checkpoints.load(run.checkpoint), TokenStream(run.tokens)
    reader = StateReader(lm, stream, CONFIG.model_copy(update={"length": 48}))
    windows = reader.windows("train")
    whole, _ = reader.whole_chunks("train", windows, 1000)
    pairs = reader.pairs(windows, 1000)
    assert set(pairs.chunk_id_N.tolist()) > set(whole.chunk_id_N.tolist())
    assert len(reader.pairs(windows, 7).state_ND) == 7


def test_a_chunk_that_a_window_cuts_has_no_state(run: Run) -> None:
    lm, stream = checkpoints.load(run.checkpoint), TokenStream(run.tokens)
    config = CONFIG.model_copy(update={"length": 48})
    reader = StateReader(lm, stream, config)
    states, n_read = reader.whole_chunks("train", reader.windows("train"), 1000)
    assert n_read == stream.n_windows("train", 48)
    start, spans = stream.bounds["train"][0], stream.spans
    for row in np.flatnonzero(np.isin(spans.chunk_id, states.chunk_id_N)):
        first, last = spans.token_start[row] - start, spans.token_end[row] - 1 - start
        assert first // 48 == last // 48
    assert 0 < len(states) < 72


def test_an_index_refuses_another_checkpoint(run: Run, index: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other", run.tokens, run.lifted, seed=5)
    with pytest.raises(ContractError, match=r"built for the checkpoint .* rerun --from build"):
        retrieval.open_index(index, other)


def test_vectors_of_other_chunks_are_refused(run: Run, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors"
    vectors.mkdir()
    np.save(vectors / "vectors.npy", np.eye(5, dtype=np.float16))
    (vectors / "encoder.json").write_text("{}")
    contracts.seal(vectors, contracts.VECTORS, rows=5)
    corpus, target = run.corpus, tmp_path / "index"
    target.mkdir()
    with pytest.raises(ContractError, match=r"has 5 vectors but .* has 120 chunks"):
        build(run.checkpoint, run.tokens, corpus.documents, corpus.chunks, vectors, target, CONFIG)


def test_the_same_inputs_give_the_same_bytes(run: Run, index: Path, tmp_path: Path) -> None:
    again = built(run, tmp_path / "index")
    assert contracts.manifest_of(again).digest == contracts.manifest_of(index).digest
