"""Conversations as token ids, and the network's first rows for the tokens they need (method §2.4).

    <|start_header_id|>{role}<|end_header_id|>\\n\\n{content}<|endofchunk|><|eot_id|>    a message
    <|start_header_id|>assistant<|end_header_id|>\\n\\n                                asks for one

Only this module places these tokens: text that spells one out gets the tokens of its characters.
An answer of several chunks closes each with `<|endofchunk|>`, as the pretraining text does.

Shape suffixes used in this file:
    B batch   T position   H token of a header   V vocabulary   D width
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.diffusion import Answers
from model.language_model import LanguageModel
from model.tokenizer import SpecialIds, Tokenizer

ASSISTANT = "assistant"


@dataclass(frozen=True)
class Message:
    """What one side says in its turn."""

    role: str
    content: str


def header(tokenizer: Tokenizer, role: str) -> list[int]:
    """What a message of this role begins with."""
    specials = tokenizer.specials
    name = tokenizer.encode(role)
    return [specials.start_header_id, *name, specials.end_header_id, *tokenizer.encode("\n\n")]


def closed(tokenizer: Tokenizer, chunks: Sequence[str]) -> list[list[int]]:
    """The tokens of each chunk of an answer; `<|eot_id|>` closes the last one too."""
    specials = tokenizer.specials
    found = [[*ids, specials.end_of_chunk_id] for ids in tokenizer.encode_batch(chunks)]
    found[-1].append(specials.end_of_turn_id)
    return found


def message(tokenizer: Tokenizer, said: Message) -> list[int]:
    """A whole message, its content as one chunk."""
    (content,) = closed(tokenizer, [said.content])
    return [*header(tokenizer, said.role), *content]


def prompt(tokenizer: Tokenizer, messages: Sequence[Message]) -> list[int]:
    """What to continue, up to `<|eot_id|>`, for the assistant's next message."""
    before = [token_id for said in messages for token_id in message(tokenizer, said)]
    return [*before, *header(tokenizer, ASSISTANT)]


def answers(ids_BT: Tensor, tokenizer: Tokenizer, trained_eos: int) -> Answers:
    """The assistant's last message in each sequence, found by its tokens.

    It runs from behind its header to the padding: content, `<|eot_id|>`, and the EOS that fill the
    last block. These are hidden like the rest, or their sight would tell how long the answer is;
    asked for are the first `trained_eos` of them.
    """
    specials = tokenizer.specials
    head_H = torch.tensor(header(tokenizer, ASSISTANT))
    found_BT = (ids_BT.unfold(1, len(head_H), 1) == head_H).all(dim=2)
    without_B = ~found_BT.any(dim=1)
    if without_B.any():
        rows = without_B.nonzero()[:, 0].tolist()
        raise ValueError(
            f"sequences {rows} of the batch hold no message of the assistant; make each of a "
            f"prompt and an answer with model.chat"
        )
    place_T = torch.arange(ids_BT.shape[1])
    begin_B1 = torch.where(found_BT, place_T[: found_BT.shape[1]], -1).amax(1, keepdim=True)
    hideable_BT = (place_T >= begin_B1 + len(head_H)) & (ids_BT != specials.pad_id)
    ended_BT = ((ids_BT == specials.end_of_turn_id) & hideable_BT).cumsum(dim=1) > 0
    # The turn's own end counts one, so up to `trained_eos` positions behind it are kept.
    askable_BT = hideable_BT & (ended_BT.cumsum(dim=1) <= 1 + trained_eos)
    return Answers(hideable_BT, askable_BT)


@torch.no_grad()
def with_chat_rows(lm: LanguageModel, tokenizer: Tokenizer) -> LanguageModel:
    """The network with rows for the chat tokens, which a vocabulary may lack or never have used.

    Each starts as the row of the special token whose place it takes: a header opens like BOS and
    closes like `<|endofchunk|>`, a turn ends like EOS. So headers, which are never asked for, start
    where the softmax gives next to nothing, as BOS does, and an answer can end before anything is
    learned; a mean of all rows would be a likely word everywhere. All other logits stay as they
    were. Equal rows part at the first step: what is asked for differs.
    """
    missing = max(0, tokenizer.vocab_size - lm.config.backbone.vocab_size)
    backbone = lm.config.backbone.model_copy(
        update={"vocab_size": lm.config.backbone.vocab_size + missing}
    )
    wider = LanguageModel(lm.config.model_copy(update={"backbone": backbone}))
    tables = ("embedding.weight", "head.weight")
    wider.load_state_dict(
        {
            name: _started(tensor, missing, tokenizer.specials) if name in tables else tensor
            for name, tensor in lm.state_dict().items()
        }
    )
    return wider.eval()


def _started(rows_VD: Tensor, missing: int, specials: SpecialIds) -> Tensor:
    longer_VD = torch.cat([rows_VD, rows_VD.new_zeros(missing, rows_VD.shape[1])])
    for new, old in (
        (specials.start_header_id, specials.bos_id),
        (specials.end_header_id, specials.end_of_chunk_id),
        (specials.end_of_turn_id, specials.eos_id),
    ):
        longer_VD[new] = longer_VD[old]
    return longer_VD
