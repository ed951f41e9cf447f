"""Text and ids: exact both ways, and no text can spell a special token."""

import pytest

from model.tokenizer import SPECIALS, Tokenizer, adopt, train

TEXTS = ["the tide comes in and the tide goes out", "def tide(hour):\n    return 2 * hour\n"] * 9
VOCAB_SIZE = 300


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return train(TEXTS, VOCAB_SIZE, tmp_path_factory.mktemp("trained") / "tokenizer.json")


@pytest.mark.parametrize(
    "text", ["", " ", "\r\n\t", "naïve 漢字 🫀", "a\u0000b", "  indented\n\n\n", "12345678"]
)
def test_decoding_gives_back_any_text(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_half_of_a_surrogate_pair_is_refused_with_its_place(tokenizer):
    with pytest.raises(ValueError, match=r"'\\udcff' at character 4.*UTF-8"):
        tokenizer.encode("tide\udcff")


def test_training_words_take_few_tokens(tokenizer):
    assert len(tokenizer.encode("the tide")) < len("the tide") / 2


def test_special_strings_in_a_text_are_ordinary_characters(tokenizer):
    text = " ".join(SPECIALS)
    ids = tokenizer.encode(text)
    assert not set(ids) & set(tokenizer.special_names)
    assert tokenizer.decode(ids) == text


def test_special_tokens_close_the_vocabulary_in_the_stated_order(tokenizer):
    names = [tokenizer.special_names[token_id] for token_id in range(VOCAB_SIZE - 8, VOCAB_SIZE)]
    assert names == list(SPECIALS)
    assert tokenizer.vocab_size == VOCAB_SIZE
    assert tokenizer.specials.eos_id == VOCAB_SIZE - 8
    assert tokenizer.specials.mask_id == VOCAB_SIZE - 4


def test_special_tokens_have_names_but_no_text(tokenizer):
    ids = [*tokenizer.encode("tide"), tokenizer.specials.end_of_chunk_id]
    assert tokenizer.decode(ids) == "tide"
    assert tokenizer.pieces(ids)[-1] == "<|endofchunk|>"


def test_a_batch_is_encoded_like_its_texts(tokenizer):
    assert tokenizer.encode_batch(TEXTS[:2]) == [tokenizer.encode(text) for text in TEXTS[:2]]


def test_the_same_texts_give_the_same_file(tokenizer, tmp_path):
    train(TEXTS, VOCAB_SIZE, tmp_path / "a.json")
    train(TEXTS, VOCAB_SIZE, tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_vocabulary_that_the_texts_cannot_fill_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"vocab_size is 1000, but .* only \d+"):
        train(["abab"], 1000, tmp_path / "tokenizer.json")


def test_a_vocabulary_without_room_for_bytes_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"vocab_size is 263, .* need 264"):
        train(TEXTS, 263, tmp_path / "tokenizer.json")


def test_adopting_adds_only_the_special_tokens_that_are_missing(tmp_path):
    import tokenizers
    from tokenizers import models, pre_tokenizers

    bare = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "<|endoftext|>": 2}, []))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.enable_truncation(2)
    bare.save(str(tmp_path / "bare.json"))

    adopted = adopt(tmp_path / "bare.json", tmp_path / "tokenizer.json")

    assert adopted.vocab_size == 2 + len(SPECIALS)
    assert adopted.specials.eos_id == 2
    assert adopted.encode("abba") == [0, 1, 1, 0]


def test_a_file_without_special_tokens_is_refused(tmp_path):
    import tokenizers
    from tokenizers import models

    tokenizers.Tokenizer(models.BPE({"a": 0}, [])).save(str(tmp_path / "bare.json"))
    with pytest.raises(ValueError, match=r"has no <\|endoftext\|>.*adopt"):
        Tokenizer(tmp_path / "bare.json")
