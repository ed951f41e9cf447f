"""Documents into chunks."""

from itertools import accumulate
from pathlib import Path

import pytest

from components import contracts, embedding, fetch, hashing
from components.atlas.chunking import chunk
from components.atlas.config import ChunkConfig
from components.cutting import Piece, cut
from tests.components.languages import LANGUAGES, Language

SMALL = ChunkConfig(
    encoder=hashing.NAME, target_min=6, target_max=9, hard_max=14, min_wordpieces=3,
    max_chars_per_wordpiece=8,
)  # fmt: skip
WORDS = ["ant", "bee", "cat", "doe", "eel", "fox", "gnu", "hen", "ibis", "jay", "koi", "lark"]


def cut_text(text: str, config: ChunkConfig = SMALL, *, is_code: bool = False) -> list[Piece]:
    return cut(text, embedding.word_pieces(config.encoder), config, is_code=is_code)


def texts(text: str, *, is_code: bool = False) -> list[str]:
    return [text[piece.start : piece.end] for piece in cut_text(text, is_code=is_code)]


def sentence(n_words: int) -> str:
    return " ".join(WORDS[:n_words]).capitalize() + ". "


def test_a_short_document_is_one_chunk() -> None:
    assert cut_text("x") == [Piece(0, 1, 1, "ok")]


def test_sentences_are_joined_up_to_the_target() -> None:
    text = sentence(3) + sentence(3) + sentence(5) + sentence(2)
    assert texts(text) == [sentence(3) + sentence(3), sentence(5) + sentence(2)]


def test_a_chunk_of_fair_length_ends_with_its_paragraph() -> None:
    first, second = sentence(5).strip() + "\n\n", sentence(2)
    assert texts(first + second * 3) == [first, second * 3]


def test_a_heading_goes_with_what_follows() -> None:
    before, heading, after = sentence(7).strip() + "\n", "# Ox\n", sentence(7)
    assert texts(before + heading + after) == [before, heading + after]


def test_a_tail_too_short_to_stand_alone_joins_what_was_before() -> None:
    text = sentence(8) + "Ox."
    assert [piece.n_wordpieces for piece in cut_text(text)] == [11]


def test_a_sentence_beyond_the_limit_is_cut_between_words_and_says_so() -> None:
    chunks = cut_text(" ".join(WORDS * 3))
    assert {piece.status for piece in chunks} == {"long"}
    assert all(" ".join(WORDS * 3)[piece.start - 1] == " " for piece in chunks[1:])


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_forty_languages_are_cut_where_their_sentences_end(language: Language) -> None:
    sentences = [sentence + language.between for sentence in language.sentences * 20]
    ends = list(accumulate(len(sentence) for sentence in sentences))
    wider = SMALL.model_copy(update={"target_max": 24, "hard_max": 30})
    chunks = cut_text("".join(sentences), wider)
    assert [piece.start for piece in chunks] == [0, *(piece.end for piece in chunks[:-1])]
    assert {piece.end for piece in chunks} <= set(ends)
    assert len(chunks) > 3
    assert max(piece.n_wordpieces for piece in chunks) <= wider.hard_max


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_forty_languages_are_cut_by_the_pieces_of_minilm(language: Language) -> None:
    config = ChunkConfig(encoder=embedding.MINILM)
    try:
        embedding.word_pieces(config.encoder)
    except fetch.NotFetchedError as error:
        pytest.skip(str(error).splitlines()[0])
    text = language.between.join(language.sentences * 120) + "\n\n" + "".join(language.sentences)
    chunks = cut_text(text, config)
    assert [piece.start for piece in chunks] == [0, *(piece.end for piece in chunks[:-1])]
    assert chunks[-1].end == len(text)
    alone = [len(embedding.word_pieces(config.encoder)(text[c.start : c.end])) for c in chunks]
    assert max(alone) <= config.hard_max
    assert {piece.status for piece in chunks} <= {"ok", "long"}


def test_where_no_white_space_is_written_ideographs_are_words() -> None:
    assert {piece.status for piece in cut_text("川の水は冷たい" * 40)} == {"long"}


@pytest.mark.parametrize(
    "sign",
    ["e\u0301", "ก\u0e33\u0e48", "क्\u200dष", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "가", "\r\n"],
)
def test_a_letter_keeps_its_marks_wherever_it_is_cut(sign: str) -> None:
    text = sign * 300
    places = {piece.end for piece in cut_text("x" + text)}
    assert len(places) > 3
    assert all((place - 1) % len(sign) == 0 for place in places)


def test_a_word_beyond_the_limit_is_cut_inside_and_says_so() -> None:
    chunks = cut_text("x" * 500)
    assert {piece.status for piece in chunks} == {"segmentation_error"}


def test_code_is_cut_between_definitions() -> None:
    first, second = "def ant():\n    return 1\n\n\n", "def bee():\n    return 2\n"
    assert texts(first + second, is_code=True) == [first, second]


@pytest.mark.parametrize("is_code", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "x", "\n", " \t\n ", "\x00\x01\x02" * 900, "." * 3000, "a " * 4000, "é\u0301" * 2000,
        "\n" * 3000, "# a\n" * 700, "日本語。" * 900, "word. Word! " * 500, "(" * 1000 + ")" * 1000,
        "@a\n" * 400, "- x\n\n" * 300, "<p>" + "nested " * 400 + "</p>\n\n\n",
    ],
)  # fmt: skip
def test_chunks_cover_any_text_in_order_within_the_limit(text: str, is_code: bool) -> None:
    chunks = cut_text(text, is_code=is_code)
    assert [piece.start for piece in chunks] == [0, *(piece.end for piece in chunks[:-1])]
    assert chunks[-1].end == len(text)
    assert max(piece.n_wordpieces for piece in chunks) <= SMALL.hard_max
    assert max(piece.end - piece.start for piece in chunks) <= SMALL.hard_max * 8


@pytest.mark.slow
def test_five_megabytes_in_one_document_are_cut() -> None:
    config = ChunkConfig(encoder=hashing.NAME)
    text = ("The quick brown fox jumps. " * 40 + "\n\n") * 4_700
    assert len(text) > 5_000_000
    chunks = cut_text(text, config)
    assert chunks[-1].end == len(text)
    assert min(piece.n_wordpieces for piece in chunks) >= config.min_wordpieces
    assert {piece.status for piece in chunks} == {"ok"}


def test_lengths_must_rise() -> None:
    with pytest.raises(ValueError, match=r"\(16, 96, 300, 256\)"):
        ChunkConfig(encoder=hashing.NAME, target_max=300)


def test_the_stage_numbers_chunks_through_all_documents(tmp_path: Path) -> None:
    documents, chunks = tmp_path / "documents", tmp_path / "chunks"
    documents.mkdir()
    chunks.mkdir()
    row = dict.fromkeys(contracts.DOCUMENTS.schema.names, "x")
    code = "def ant():\n    return 1\n\n\ndef bee():\n    return 2\n"
    rows = [
        {**row, "doc_id": "b", "text": sentence(7) + sentence(8)},
        {**row, "doc_id": "a", "domain": "code", "text": code},
    ]
    contracts.write(rows, documents, contracts.DOCUMENTS)
    assert chunk(documents, chunks, SMALL) == 4
    table = contracts.read(chunks, contracts.CHUNKS)
    assert table["chunk_id"].to_pylist() == [0, 1, 2, 3]
    assert table["doc_id"].to_pylist() == ["b", "b", "a", "a"]
    assert code[table["start"].to_pylist()[3] :].startswith("def bee")
