"""Every generated token is accounted for, and every citation stands in the corpus."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from components import contracts, retrieval
from components.attribution.config import AttributeConfig, MaskingConfig, RemovalConfig
from components.attribution.names import names_of
from components.attribution.similar import similar_chunks
from components.attribution.stage import attribute
from components.contracts import ContractError
from components.index.config import BuildConfig
from components.index.stage import build
from model import checkpoint as checkpoints
from model.input_attribution_config import InputAttributionConfig
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.tokenizer import Tokenizer
from tests.components.explained_run import Run, write_checkpoint, write_run
from tests.components.written_names import write_names

CONFIG = AttributeConfig(
    n_prompts=4, prompt_tokens_least=5, prompt_tokens_most=9, top_concepts=2, top_inputs=3,
    top_sources=2, input_targets=3, inputs=InputAttributionConfig(max_evaluations=5),
    masking=MaskingConfig(
        targets=2, counts=(1, 4), random_orders=2,
        in_parts=InputAttributionConfig(n_parts=3, max_evaluations=7),
    ),
    removal=RemovalConfig(targets=3, concepts=2, n_likeliest=200, upstream=1),
    sampling=SamplingConfig(n_new=11, temperature=0.7),
)  # fmt: skip

NAMED = (0, 3, 5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def index(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    config = BuildConfig(
        length=64, hidden_width=8, n_steps=3, batch_pairs=8, batch_sequences=4, n_verbatim=5,
        bootstrap_draws=20,
    )  # fmt: skip
    corpus = run.corpus
    build(run.checkpoint, run.tokens, corpus.documents, corpus.chunks, run.vectors, folder, config)
    return folder


@pytest.fixture(scope="module")
def names(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named") / "names"
    return write_names(folder, run.checkpoint, {concept: f"Weather {concept}" for concept in NAMED})


def attributed(run: Run, index: Path, names: Path, folder: Path) -> Path:
    folder.mkdir()
    corpus = run.corpus
    attribute(
        run.checkpoint, index, names, run.tokens, corpus.documents, corpus.chunks, folder, CONFIG
    )
    return folder


@pytest.fixture(scope="module")
def attributions(
    run: Run, index: Path, names: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return attributed(run, index, names, tmp_path_factory.mktemp("out") / "attributions")


def rows_of(attributions: Path, kind: str) -> list[dict[str, object]]:
    rows = contracts.read(attributions, contracts.ATTRIBUTIONS).to_pylist()
    return [row for row in rows if row["kind"] == kind]


def summary_of(attributions: Path) -> dict[str, list]:  # type: ignore[type-arg]
    found: dict[str, list] = json.loads((attributions / "summary.json").read_text())  # type: ignore[type-arg]
    return found


def test_concepts_of_every_generated_token_sum_to_its_logit(attributions: Path) -> None:
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for row in rows_of(attributions, "concept"):
        sums[row["prompt_id"], row["position"]] += row["weight"]  # type: ignore[index, operator]
    logits = {
        (prompt["prompt_id"], token["position"]): token["logit"]
        for prompt in summary_of(attributions)["prompts"]
        for token in prompt["tokens"]
    }
    assert sums.keys() == logits.keys()
    for token, logit in logits.items():
        assert sums[token] == pytest.approx(logit, abs=1e-4)


def test_listed_concepts_come_strongest_first_and_by_name(attributions: Path) -> None:
    listed = [row for row in rows_of(attributions, "concept") if row["rank"] in (0, 1)]
    first, second = listed[0::2], listed[1::2]
    for one, other in zip(first, second, strict=True):
        assert abs(one["weight"]) >= abs(other["weight"])  # type: ignore[arg-type]
        assert str(one["ref"]).startswith("known:")
        assert one["name"] in ("rain", "bread", "violin", "seven", "root", "wheel")


def test_unknown_concepts_are_listed_by_the_names_that_hold(attributions: Path) -> None:
    rows = [row for row in rows_of(attributions, "concept") if row["ref"] != "unknown:rest"]
    listed = [row for row in rows if str(row["ref"]).startswith("unknown:")]
    assert len(listed) == 2 * len([row for row in rows if row["ref"] == "residual"])
    for row in listed:
        concept = int(str(row["ref"]).removeprefix("unknown:"))
        assert (row["name"] == f"Discovered: Weather {concept}") == (concept in NAMED)
    assert {str(row["name"]).split()[0] for row in listed} == {"Discovered:", "unknown"}


def test_removing_a_concept_does_what_its_contribution_foretold(attributions: Path) -> None:
    found = json.loads((attributions / "summary.json").read_text())["concepts"]
    assert found["largest_sum_error_logits"] < 1e-4
    assert found["largest_unknown_sum_error_logits"] < 1e-4
    for kind in ("known", "unknown"):
        exact = found["removal"]["at_the_bottleneck"][kind]
        assert exact["rank_correlation"] == pytest.approx(1.0, abs=1e-4)
        assert exact["largest_error_logits"] < 1e-4
        assert 0 < exact["n_pairs_not_kept"] < exact["n_pairs"]
        nearly = found["removal"]["log_probability"][kind]
        assert nearly["mean_error"]["value"] < nearly["mean_error_by_own_logit"]["value"]
    assert [at["after_layer"] for at in found["removal"]["upstream"]] == [1]
    parts = [found["concept_by_concept"][part] for part in ("known", "unknown", "residual")]
    assert sum(part["value"] for part in parts) == pytest.approx(1.0)
    assert found["unknown_names"]["n_named"] == len(NAMED)
    assert 0 < found["named_unknown_share"]["value"] < 1


def test_chunks_hold_every_token_once_with_shares_of_their_own(attributions: Path) -> None:
    for prompt in summary_of(attributions)["prompts"]:
        positions = [at for chunk in prompt["chunks"] for at in chunk["positions"]]
        assert positions == [token["position"] for token in prompt["tokens"]]
        for chunk in prompt["chunks"]:
            parts = [chunk["shares"][part] for part in ("known", "unknown", "residual")]
            assert sum(part["value"] for part in parts) == pytest.approx(1.0)
            for kind in ("known", "unknown"):
                sizes = [abs(one["share"]) for one in chunk["concepts"] if one["kind"] == kind]
                assert sizes
                assert sizes == sorted(sizes, reverse=True)


def test_names_of_another_checkpoint_are_refused(run: Run, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other", run.tokens, run.lifted, seed=5)
    with pytest.raises(ContractError, match="names the unknown concepts of the checkpoint"):
        names_of(run.checkpoint, write_names(tmp_path / "names", other, {}))


def test_inputs_are_positions_the_network_saw_unmasked(attributions: Path) -> None:
    rows = rows_of(attributions, "input")
    pieces = {
        prompt["prompt_id"]: prompt["prompt_pieces"] + [t["token"] for t in prompt["tokens"]]
        for prompt in summary_of(attributions)["prompts"]
    }
    assert {row["rank"] for row in rows} == {0, 1, 2}
    for row in rows:
        source = int(str(row["ref"]).removeprefix("position:"))
        assert source != row["position"]
        prompt_pieces = pieces[row["prompt_id"]]  # type: ignore[index]
        assert source >= len(prompt_pieces) or prompt_pieces[source] == row["name"]


def test_training_rows_cite_text_that_stands_in_the_corpus(run: Run, attributions: Path) -> None:
    documents = contracts.read(run.corpus.documents, contracts.DOCUMENTS).to_pylist()
    text_of = {row["doc_id"]: row["text"] for row in documents if row["split"] == "train"}
    n_cited = 0
    for prompt in summary_of(attributions)["prompts"]:
        by_chunk = defaultdict(list)
        for source in prompt["sources"]:
            by_chunk[source["chunk_index"]].append(source["cosine"])
            place = slice(source["start"], source["end"])
            assert text_of[source["doc_id"]][place] == source["text"]
            assert source["licence"] == "CC0-1.0"
        assert by_chunk
        for cosines in by_chunk.values():
            assert cosines == sorted(cosines, reverse=True)
            assert len(cosines) == 2
        n_cited += len(prompt["sources"])
    rows = rows_of(attributions, "training")
    assert len(rows) == n_cited
    assert all("of random pairs" in str(row["name"]) for row in rows)


def test_every_chunk_of_a_text_has_its_own_sources(run: Run, index: Path) -> None:
    lm, tokenizer = checkpoints.load(run.checkpoint), Tokenizer(run.tokens / "tokenizer.json")
    end = lm.config.end_of_chunk_id
    words = [tokenizer.encode(text) for text in ("rain cloud storm", "oven bread salt")]
    ids = torch.tensor([lm.config.bos_id, *words[0], end, *words[1]])
    (trace,) = generate(lm, [ids[:1]], SamplingConfig(n_new=len(ids) - 1, temperature=0.0))
    at = trace.position_N.argsort()
    written_T = torch.cat([ids, trace.ids_T[len(ids) :]])
    written = replace(trace, ids_T=written_T, token_N=ids[trace.position_N])
    retriever = retrieval.open_index(index, run.checkpoint)
    first, second = similar_chunks(lm, tokenizer, retriever, written, at, k=3)
    assert first.positions == tuple(range(1, len(words[0]) + 2))
    assert second.positions == tuple(range(len(words[0]) + 2, len(ids)))
    assert [source.cosine for source in first.sources] != [
        source.cosine for source in second.sources
    ]


def test_prompts_are_held_out_openings_of_all_domains(run: Run, attributions: Path) -> None:
    origins = [prompt["origin"] for prompt in summary_of(attributions)["prompts"]]
    assert {origin["split"] for origin in origins} == {"test"}
    assert {origin["domain"] for origin in origins} == {"letters", "notes"}
    assert len({origin["doc_id"] for origin in origins}) == 4


def test_replayed_logits_are_recorded_ones_and_completeness_is_reported(
    attributions: Path,
) -> None:
    found = json.loads((attributions / "summary.json").read_text())["inputs"]
    assert found["largest_replay_error_logits"] < 1e-4
    assert (found["mean_evaluations"], found["n_targets"]) == (5, 12)
    assert 0 < found["n_not_reached"] <= 12
    assert found["completeness_error"] == pytest.approx(found["completeness_interval"]["value"])


def test_what_masking_does_is_told_beside_what_was_foretold(attributions: Path) -> None:
    found = json.loads((attributions / "summary.json").read_text())["inputs"]["masking"]
    assert [at["n_inputs"] for at in found["curve"]] == [1, 4]
    assert (found["n_targets"], found["deletion_ratio_at"]) == (8, 4)
    for at in found["curve"]:
        assert at["deletion_logits"]["value"] > at["deletion_random_logits"]["value"]
        assert at["deletion_logits"]["n_groups"] == 4
    for kind in ("together", "in_parts"):
        rank = found["agreement"][kind]["rank_correlation"]
        assert rank["low"] <= rank["value"] <= rank["high"]


def test_an_index_of_another_checkpoint_is_refused(run: Run, index: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other", run.tokens, run.lifted, seed=5)
    named = write_names(tmp_path / "names", other, {})
    corpus = run.corpus
    with pytest.raises(ContractError, match="was built for the checkpoint"):
        attribute(
            other, index, named, run.tokens, corpus.documents, corpus.chunks, tmp_path, CONFIG
        )


def test_a_citation_that_is_not_in_the_corpus_is_refused(
    run: Run, index: Path, names: Path, tmp_path: Path
) -> None:
    changed = pq.read_table(run.corpus.documents / "rows.parquet").to_pylist()
    documents, target = tmp_path / "documents", tmp_path / "attributions"
    documents.mkdir()
    target.mkdir()
    rows = ({**row, "text": row["text"].upper()} for row in changed)
    contracts.write(rows, documents, contracts.DOCUMENTS)
    with pytest.raises(ContractError, match=r"the index gives chunk .* another text"):
        attribute(
            run.checkpoint, index, names, run.tokens, documents, run.corpus.chunks, target, CONFIG
        )


def test_prompts_longer_than_any_chunk_are_refused(
    run: Run, index: Path, names: Path, tmp_path: Path
) -> None:
    config = CONFIG.model_copy(update={"prompt_tokens_least": 50, "prompt_tokens_most": 53})
    corpus = run.corpus
    with pytest.raises(ValueError, match="begins with a chunk of 50 tokens or more"):
        attribute(
            run.checkpoint,
            index,
            names,
            run.tokens,
            corpus.documents,
            corpus.chunks,
            tmp_path,
            config,
        )


def test_the_same_inputs_give_the_same_bytes(
    run: Run, index: Path, names: Path, attributions: Path, tmp_path: Path
) -> None:
    again = attributed(run, index, names, tmp_path / "attributions")
    assert contracts.manifest_of(again).digest == contracts.manifest_of(attributions).digest


def test_tokens_are_listed_as_they_stand_in_the_text(attributions: Path) -> None:
    for prompt in summary_of(attributions)["prompts"]:
        first = len(prompt["prompt_pieces"])
        positions = [token["position"] for token in prompt["tokens"]]
        assert positions == list(range(first, first + len(positions)))
        orders = [token["order"] for token in prompt["tokens"]]
        assert len(set(orders)) == len(orders)
        assert len(prompt["prompt_weights"]) == first
