"""The fine-tuning stage on a made-up language: answers are learned, prompts are not asked for."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from components import contracts, hashing
from components.cutting_config import CutConfig
from components.finetuning.config import ANSWER_NOISE, ANSWER_OBJECTIVE, FinetuneConfig
from components.finetuning.sequences import answers, held_out_ids, labelled, write_stream
from components.finetuning.stage import finetune
from components.launch import RanksConfig
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model.train_config import InterleavingConfig, OptimConfig, TrainingConfig
from tests.components.written_messages import conversations, write_annotator, write_messages
from tests.components.written_tokens import BLOCK, write_checkpoint, write_tokens

LENGTH = 13 * BLOCK
CUTTING = CutConfig(
    encoder=hashing.NAME, target_min=3, target_max=4, hard_max=8, min_wordpieces=2
)  # fmt: skip


def config(**changes):
    training = TrainingConfig(
        n_tokens=24 * 6 * LENGTH, batch_sequences=6, length=LENGTH, dtype="float32",
        optim=OptimConfig(peak_lr=5e-3, warmup=0.1, decay=0.5), objective=ANSWER_OBJECTIVE,
        noise=ANSWER_NOISE, validations=2, log_every=6,
    )  # fmt: skip
    values = {
        "training": training, "cutting": CUTTING, "valid_share": 0.2,
        "ranks": RanksConfig(ranks=1, threads=1), "validation_sequences": 8,
    }  # fmt: skip
    return FinetuneConfig(**(values | changes))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetuning")
    tokens = write_tokens(folder / "tokens")
    write_checkpoint(folder / "checkpoint", tokens, max_length=LENGTH)
    write_messages(folder / "messages", conversations())
    write_annotator(folder / "annotator")
    return folder


def run(inputs, out, settings, checkpoint="checkpoint", annotator="annotator"):
    for name in ("finetuned", "curve", "scores"):
        (out / name).mkdir(parents=True)
    return finetune(
        inputs / "messages", inputs / checkpoint, inputs / annotator, out / "finetuned",
        out / "curve", out / "scores", settings,
    )  # fmt: skip


@pytest.fixture(scope="module")
def finetuned(inputs):
    run(inputs, inputs / "out", config())
    return inputs / "out"


def packed(inputs, folder, messages, settings=None, *, with_annotator=True):
    """The stream of some messages."""
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes((inputs / "tokens/tokenizer.json").read_bytes())
    annotator = inputs / "annotator" if with_annotator else None
    counts = write_stream(messages, annotator, folder, settings or config(), block=BLOCK)
    return TokenStream(folder), counts


def test_answers_are_learned_and_every_metric_stands_before_and_after(finetuned):
    scores = json.loads((finetuned / "scores" / "scores.json").read_text())
    change = scores["answer_nll_change_nats_per_token"]
    assert change["high"] < -0.5
    for name in (
        "answer_nll_nats_per_token", "concept_loss_nats", "independence_loss",
        "concept_contribution", "alignment_auroc",
    ):  # fmt: skip
        for when in ("before", "after"):
            score = scores[f"{name}_{when}"]
            assert score["low"] <= score["value"] <= score["high"]
            assert score["n"] > 1
    difference = [
        scores[f"answer_nll_nats_per_token_{when}"]["value"] for when in ("after", "before")
    ]
    assert change["value"] == pytest.approx(difference[0] - difference[1], abs=1e-6)


def test_how_many_answers_were_read_stands_beside_the_scores(finetuned):
    told = json.loads((finetuned / "scores" / "answers.json").read_text())
    assert told["n_train"] + told["n_valid"] == 36
    assert told["n_left_out"] == 0


def test_the_checkpoint_opens_alone_and_remembers_what_came_before(inputs, finetuned):
    contracts.verify(finetuned / "finetuned", contracts.CHECKPOINT)
    before, after = (
        checkpoints.load(folder) for folder in (inputs / "checkpoint", finetuned / "finetuned")
    )
    assert before.config == after.config
    facts = contracts.json_file(finetuned / "finetuned", "training.json")
    assert facts["earlier"]["steps"] == 3
    for name in ("tokenizer.json", "concepts.json"):
        texts = {(folder / name).read_text() for folder in (
            inputs / "checkpoint", finetuned / "finetuned")}  # fmt: skip
        assert len(texts) == 1
    curve = contracts.read(finetuned / "curve", contracts.CURVE)
    losses = curve.column("nll_nats").to_pylist()
    assert losses[-1] < losses[0] - 0.5
    assert contracts.json_file(finetuned / "curve", "run.json")["name"] == "finetuning"


def test_each_answer_has_a_window_with_all_that_was_said_before_it(inputs, tmp_path):
    stream, counts = packed(inputs, tmp_path / "tokens", inputs / "messages")
    assert (counts.n_train + counts.n_valid, counts.n_left_out) == (36, 0)
    specials = stream.specials
    for split, n_windows in (("train", counts.n_train), ("valid", counts.n_valid)):
        assert stream.n_windows(split, LENGTH) == n_windows
        ids = stream.batch(split, LENGTH, np.arange(n_windows)).ids_BT.numpy()
        assert set((ids == specials.end_of_turn_id).sum(axis=1).tolist()) <= {2, 4}
        assert (ids[:, 0] == specials.start_header_id).all()
        assert ((ids != specials.pad_id).sum(axis=1) % BLOCK == 0).all()


def test_conversations_are_held_out_whole(inputs, tmp_path):
    stream, _ = packed(inputs, tmp_path / "tokens", inputs / "messages")
    ids = {
        split: {stream.spans.doc_id[row] for row in stream.span_rows(split).tolist()}
        for split in ("train", "valid")
    }
    assert not ids["train"] & ids["valid"]
    names = [f"c{number:02d}" for number in range(30)]
    assert ids["valid"] == held_out_ids(names, config())
    assert held_out_ids(names[:20], config()) <= ids["valid"]


def test_chunks_of_answers_carry_labels_and_short_ones_none(inputs, tmp_path):
    said = [
        [("user", "rain?"), ("assistant", "Rain cloud storm wind. Bread oven salt knife. ")],
        [("user", "rain?"), ("assistant", "rain")],
    ]
    messages = write_messages(tmp_path / "messages", said)
    two, short = labelled(list(answers(messages, CUTTING)), inputs / "annotator", CUTTING)
    assert (two.chunks, two.concepts) == (
        ("Rain cloud storm wind. ", "Bread oven salt knife. "), ((0,), (1,)),
    )  # fmt: skip
    assert short.concepts == (None,)
    write_messages(tmp_path / "more", [*said, *said])
    stream, _ = packed(inputs, tmp_path / "tokens", tmp_path / "more")
    rows = np.concatenate([stream.span_rows(split) for split in ("train", "valid")])
    told = {
        (bool(stream.spans.labelled[row]), *stream.spans.concepts_NM[row][:1].tolist())
        for row in rows.tolist()
    }
    assert told == {(True, 0), (True, 1), (False, -1)}


def test_no_token_of_a_prompt_belongs_to_a_chunk(inputs, tmp_path):
    stream, counts = packed(inputs, tmp_path / "tokens", inputs / "messages")
    batch = stream.batch("train", LENGTH, np.arange(counts.n_train))
    pooled = [
        stream.tokenizer.decode(ids[chunks >= 0].tolist())
        for ids, chunks in zip(batch.ids_BT, batch.chunk_BT, strict=True)
    ]
    assert {len(text.split()) for text in pooled} == {4}


def test_what_does_not_fit_is_counted_and_nothing_left_is_refused(inputs, tmp_path):
    words = " ".join(["rain"] * 99)
    said = [*conversations(12), [("user", words), ("assistant", "rain cloud storm wind")]]
    messages = write_messages(tmp_path / "messages", said)
    _, counts = packed(inputs, tmp_path / "tokens", messages)
    assert counts.n_left_out == 1
    with pytest.raises(ValueError, match=r"0 held out fit into 104 tokens .*raise training.length"):
        packed(inputs, tmp_path / "none", write_messages(tmp_path / "long", said[-1:]))


def test_held_out_answers_without_any_label_are_refused(inputs, tmp_path):
    said = [[("user", f"rain {number}?"), ("assistant", "rain")] for number in range(4)]
    with pytest.raises(ValueError, match="has the 2 word pieces that labels take"):
        packed(inputs, tmp_path / "tokens", write_messages(tmp_path / "messages", said))


def test_an_annotator_of_another_library_or_encoder_is_refused(inputs, tmp_path):
    write_annotator(tmp_path / "annotator", library="another")
    with pytest.raises(contracts.ContractError, match="labels with library another"):
        run(inputs, tmp_path / "out", config(), annotator=tmp_path / "annotator")
    answer = replace(next(answers(inputs / "messages", CUTTING)))
    facts = tmp_path / "annotator" / "annotator.json"
    facts.write_text(facts.read_text().replace('"encoder_digest": "', '"encoder_digest": "0'))
    with pytest.raises(contracts.ContractError, match="set it to the annotator's"):
        labelled([answer], tmp_path / "annotator", CUTTING)


def test_windows_longer_than_the_network_reads_are_refused(inputs, tmp_path):
    training = config().training.model_copy(update={"length": 2 * LENGTH})
    with pytest.raises(ValueError, match="length is 208, but the checkpoint reads 104"):
        run(inputs, tmp_path / "out", config(training=training))


def test_steering_steps_are_left_to_mid_training():
    training = config().training.model_dump() | {"interleaving": InterleavingConfig().model_dump()}
    with pytest.raises(ValidationError, match="no lifted words to steer towards; leave it to mid"):
        config(training=training)


def test_clean_first_blocks_are_refused_since_prompts_are_whole_anyway():
    noise = ANSWER_NOISE.model_copy(update={"clean_prefix": 0.2})
    with pytest.raises(ValidationError, match=r"clean_prefix is 0.2, .* set it to 0"):
        config(training=config().training.model_copy(update={"noise": noise}).model_dump())


@pytest.mark.slow
def test_a_family_without_concepts_learns_to_answer_with_capability_alone(inputs, tmp_path):
    write_checkpoint(tmp_path / "ar", inputs / "tokens", family="ar", max_length=LENGTH)
    run(inputs, tmp_path / "out", config(), checkpoint=tmp_path / "ar")
    scores = json.loads((tmp_path / "out" / "scores" / "scores.json").read_text())
    assert scores["answer_nll_change_nats_per_token"]["high"] < 0
    assert {name.rpartition("_")[0] for name in scores} == {
        "answer_nll_nats_per_token", "answer_nll_change_nats_per",
    }  # fmt: skip
