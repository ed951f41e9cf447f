"""The tokenizer: byte-level BPE with the method's special tokens (paper §5.2).

    … merges … | <|endoftext|> <|pad|> <|bos|> <|endofchunk|> <|mask|> | chat tokens

Specials close the vocabulary, and exist only as ids: a document that spells one out in its text
gets the ordinary tokens of those characters, so no text can end a document or mask itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

BASE_SPECIALS = ("<|endoftext|>", "<|pad|>", "<|bos|>", "<|endofchunk|>", "<|mask|>")
CHAT_SPECIALS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
SPECIALS = BASE_SPECIALS + CHAT_SPECIALS

N_BYTES = 256

# Words take the space before them, numbers split after three digits, and line ends stay with the
# punctuation that closes a line, which keeps the indentation of source code in few tokens.
PIECES = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the special tokens of one vocabulary."""

    eos_id: int
    pad_id: int
    bos_id: int
    end_of_chunk_id: int
    mask_id: int
    start_header_id: int
    end_header_id: int
    end_of_turn_id: int


class Tokenizer:
    """A `tokenizer.json`, opened. Encodes plain text: callers place the special tokens."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        found = {name: self._tokenizer.token_to_id(name) for name in SPECIALS}
        missing = [name for name, token_id in found.items() if token_id is None]
        if missing:
            raise ValueError(
                f"{path} has no {', '.join(missing)}: write it with model.tokenizer.train "
                f"or model.tokenizer.adopt, which add the special tokens of the method"
            )
        self.special_names = {
            token_id: name for name, token_id in found.items() if token_id is not None
        }
        self.specials = SpecialIds(*self.special_names)

    @property
    def vocab_size(self) -> int:
        """Tokens in the vocabulary, special ones included: ids are 0 … vocab_size − 1."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without any special token. Raises ValueError for what is no Unicode."""
        _check(text)
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` for many texts at once, in parallel."""
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [list(encoding.ids) for encoding in found]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids; special tokens have none."""
        plain = [int(token_id) for token_id in ids if int(token_id) not in self.special_names]
        return str(self._tokenizer.decode(plain, skip_special_tokens=False))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id by itself, as a person would read it; special tokens by their names."""
        return [
            self.special_names.get(int(token_id)) or self.decode([token_id]) for token_id in ids
        ]


def train(texts: Iterable[str], vocab_size: int, path: Path) -> Tokenizer:
    """Learn merges from texts and save them to `path`. The same texts give the same bytes."""
    smallest = N_BYTES + len(SPECIALS)
    if vocab_size < smallest:
        raise ValueError(
            f"vocab_size is {vocab_size}, but {N_BYTES} bytes and {len(SPECIALS)} special tokens "
            f"need {smallest}; raise it"
        )
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(list(SPECIALS))
    learned = tokenizer.get_vocab_size(with_added_tokens=True)
    if learned != vocab_size:
        raise ValueError(
            f"vocab_size is {vocab_size}, but the texts hold repeated pairs for only {learned}; "
            f"lower vocab_size or give more text"
        )
    tokenizer.save(str(path))
    return Tokenizer(path)


def adopt(given: Path, path: Path) -> Tokenizer:
    """Save a ready-made `tokenizer.json` to `path`, with the specials it lacks added at the end."""
    tokenizer = tokenizers.Tokenizer.from_file(str(given))
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.save(str(path))
    return Tokenizer(path)


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has {text[error.start]!r} at character {error.start}, half of a surrogate "
            f"pair, which is no character; give text in UTF-8"
        ) from error
