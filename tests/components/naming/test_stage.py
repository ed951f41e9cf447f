"""A concept gets a name that holds on documents the name was not found from, or none."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csc_matrix

from components import contracts, unknown_names
from components.chunks import ChunkTexts
from components.contracts import ContractError
from components.endpoints import LocalModel
from components.hashing import HashingEmbedder
from components.naming import phrases, stage
from components.naming.asked import _card
from components.naming.config import LanguageModelNamerConfig, NameConfig
from components.naming.evidence import gathered
from components.naming.scan import Scan, scan
from components.tokens import TokenStream
from components.unknown_names import UNNAMED
from model import checkpoint as checkpoints
from model.diffusion import fixed, question
from model.events import Events, ignore
from model.language_model import LanguageModel
from tests.components.endpoint import Body, Reply, serving
from tests.components.explained_run import WORDS, Run, write_run

CONFIG = NameConfig(
    length=64, n_named=4, n_activating=5, least_activating=3, n_others=9, n_phrases=12,
    batch_sequences=4, bootstrap_draws=20,
)  # fmt: skip
TOPIC, PLANTED = 2, 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def planted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a scan would find of a network with one concept that is active on one topic's words."""
    texts = ChunkTexts(run.corpus.documents, run.corpus.chunks)

    def planted_scan(
        lm: LanguageModel, stream: TokenStream, config: NameConfig, events: Events
    ) -> Scan:
        found = scan(lm, stream, config, events)
        activation_CU = found.activation_CU.toarray()
        activation_CU[:, PLANTED] = [
            sum(text.count(word) for word in WORDS[TOPIC]) / 9
            for text in texts.at(found.chunk_id_C.tolist())
        ]
        found.contribution_U[PLANTED] = found.contribution_U.sum()
        return replace(found, activation_CU=csc_matrix(activation_CU))

    monkeypatch.setattr(stage, "scan", planted_scan)


def named(run: Run, folder: Path, config: NameConfig = CONFIG) -> Path:
    folder.mkdir()
    corpus = run.corpus
    stage.name(
        run.checkpoint, run.tokens, corpus.documents, corpus.chunks, run.vectors, folder, config
    )  # fmt: skip
    return folder


@pytest.mark.usefixtures("planted")
def test_a_planted_concept_is_named_by_a_word_of_its_topic(run: Run, tmp_path: Path) -> None:
    folder = named(run, tmp_path / "names")
    digest = contracts.verify(run.checkpoint, contracts.CHECKPOINT).digest
    found = unknown_names.load(folder, digest)
    planted = found.by_id[PLANTED]
    assert any(word in planted.name.lower() for word in WORDS[TOPIC]), planted
    assert planted.auc >= 0.75
    assert planted.auc_low <= planted.auc <= planted.auc_high
    assert found.shown(PLANTED) == f"Discovered: {planted.name}"
    assert found.shown(99) == "unknown 99"
    tried, n_named = found.facts["n_tried"], found.facts["n_named"]
    assert n_named == sum(each.name != UNNAMED for each in found.by_id.values()) <= tried


@pytest.mark.usefixtures("planted")
def test_below_the_bar_a_concept_is_unnamed_and_its_auc_is_told(run: Run, tmp_path: Path) -> None:
    strict = CONFIG.model_copy(update={"least_auc": 0.9999})
    folder = named(run, tmp_path / "names", strict)
    rows = contracts.read(folder, contracts.UNKNOWN_NAMES).to_pylist()
    assert any(row["auc"] < 0.9999 for row in rows)
    assert all((row["name"] == UNNAMED) == (row["auc"] < 0.9999) for row in rows)
    assert any(row["n_chunks"] > 0 for row in rows)


def passages(body: Body) -> list[str]:
    """What an endpoint was shown as data."""
    (*_, question) = body["messages"]  # type: ignore[misc]
    return re.findall(r"<passage>(.*?)</passage>", str(question["content"]), flags=re.DOTALL)


@pytest.mark.usefixtures("planted")
def test_a_language_model_names_and_another_judges_what_it_never_saw(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))

    def reply(number: int, body: Body) -> Reply:
        if number == 1:
            return 200, '{"name": "Music", "description": "Instruments."}'
        (passage,) = passages(body)
        return 200, json.dumps({"score": 5 if any(word in passage for word in WORDS[TOPIC]) else 1})

    with serving(reply) as endpoint:
        remote = {"kind": "remote", "base_url": endpoint.url, "name": "m", "n_concurrent": 1}
        folder = named(
            run, tmp_path / "names",
            NameConfig.model_validate(
                {**CONFIG.model_dump(), "n_named": 1, "namer": {"language_model": remote},
                 "judge": {"language_model": remote}}
            ),
        )  # fmt: skip
    (row,) = contracts.read(folder, contracts.UNKNOWN_NAMES).to_pylist()
    assert (row["name"], row["description"]) == ("Music", "Instruments.")
    assert row["auc"] >= 0.75
    shown, *judged = [passages(body) for _, body in endpoint.asked]
    assert len(shown) == len(set(shown)) >= 3
    assert len(judged) == row["n_chunks"] > 9
    assert not set(shown) & {passage for asked in judged for passage in asked}


def test_names_are_tested_on_other_documents_than_they_are_found_from(run: Run) -> None:
    found = scan(checkpoints.load(run.checkpoint), TokenStream(run.tokens), CONFIG, ignore)
    evidence = gathered(found, CONFIG)
    assert evidence
    for each in evidence:
        first, second = (
            set(found.doc_id_C[np.concatenate([side.active, side.others])].tolist())
            for side in (each.found_on, each.tested_on)
        )
        assert not first & second
        activity_C = found.activation_CU[:, [each.concept_id]].toarray()[:, 0]
        assert activity_C[each.found_on.active].min() >= activity_C[each.found_on.others].max()
        assert not set(each.half.tolist()) & set(each.found_on.active.tolist())
        assert activity_C[each.half].max(initial=0) <= activity_C[each.found_on.active].min()


def test_shares_of_contribution_are_of_all_unknown_concepts(run: Run) -> None:
    found = scan(checkpoints.load(run.checkpoint), TokenStream(run.tokens), CONFIG, ignore)
    for each in gathered(found, CONFIG):
        wanted = found.contribution_U[each.concept_id] / found.contribution_U.sum()
        assert each.share == pytest.approx(wanted)


def test_the_names_of_another_checkpoint_are_refused(run: Run, tmp_path: Path) -> None:
    folder = named(run, tmp_path / "names")
    with pytest.raises(ContractError, match=r"its concepts are others.*rerun --from name"):
        unknown_names.load(folder, "0" * 64)


def test_lifted_phrases_are_those_of_the_active_chunks() -> None:
    active = ["the violin and a chord", "a violin solo, some chord", "violin"]
    others = ["bread and salt", "some bread", "a chord"]
    assert phrases.lifted(active, others, 2)[0] == "violin"
    assert "bread" not in phrases.lifted(active, others, 9)


def test_phrases_are_ranked_by_how_well_they_tell_chunks_apart() -> None:
    encoder = HashingEmbedder()
    texts = ["violin chord tempo", "violin drum chord", "bread oven salt", "bread knife"]
    active_N = np.array([True, True, False, False])
    assert phrases.ranked(["bread", "violin"], encoder.embed(texts), active_N, encoder) == [
        "violin", "bread",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ('{"name": " Royal  courts", "description": "Kings."}', ("Royal courts", "Kings.")),
        ('{"name": 3, "description": "x"}', ("", "")),
        ("a poem", ("", "")),
        ("[]", ("", "")),
    ],
)
def test_an_answer_that_cannot_be_read_names_nothing(answer: str, wanted: tuple[str, str]) -> None:
    assert (_card(answer).name, _card(answer).description) == wanted


def test_a_model_that_completes_examples_is_refused_as_namer() -> None:
    with pytest.raises(ValueError, match="completes examples and cannot describe"):
        LanguageModelNamerConfig(language_model=LocalModel())


@torch.no_grad()
def test_a_chunk_is_as_active_as_its_asked_tokens_and_logits_are_all_counted(run: Run) -> None:
    lm, stream = checkpoints.load(run.checkpoint), TokenStream(run.tokens)
    found = scan(lm, stream, CONFIG, ignore)
    active_CU = np.zeros((len(stream.spans), lm.concepts.config.n_unknown))
    asked_C, total = np.zeros(len(stream.spans)), 0.0
    for window in range(stream.n_windows("train", CONFIG.length)):
        batch = stream.batch("train", CONFIG.length, np.array([window]))
        spans_C = stream.origins("train", CONFIG.length, np.array([window])).span_C
        asked = question(batch, fixed(0.5), CONFIG.seed, 0, lm.config)
        top = lm.concepts(lm.hidden(asked.noisy_BT)).top_unknown
        for row, at in asked.masked_BT.nonzero().tolist():
            embedding_kD = lm.concepts.unknown.rows(top.ids[row, at])
            logit_k = embedding_kD @ lm.head_VD[asked.target_BT[row, at]]
            total += float((top.activations[row, at] * logit_k).abs().sum())
            chunk = int(batch.chunk_BT[row, at])
            if chunk >= 0:
                asked_C[spans_C[chunk]] += 1
                ids_k = top.ids[row, at].numpy()
                active_CU[spans_C[chunk], ids_k] += top.activations[row, at].numpy()
    rows = np.flatnonzero(asked_C)
    assert found.chunk_id_C.tolist() == stream.spans.chunk_id[rows].tolist()
    mean_CU = active_CU[rows] / asked_C[rows, None]
    np.testing.assert_allclose(found.activation_CU.toarray(), mean_CU, atol=1e-6)
    assert found.contribution_U.sum() == pytest.approx(total, rel=1e-5)
