"""Messages@1: user and assistant in turn after one system message at most, and nothing blank."""

import pandas as pd
import pyarrow as pa

from components.gates.config import MessageBounds
from components.gates.rules import Between, Fact, OneOf, Present, Sheet, Unique, facts

ROLES = ("system", "user", "assistant")
_CONTROL = "[\x00-\x08\x0e-\x1f\x7f\ufffd]"


def sheets(table: pa.Table, bounds: MessageBounds) -> list[Sheet]:
    """Rows by conversation, by message, then the whole."""
    frame = table.drop(["messages"]).to_pandas()
    said = [found or [] for found in table.column("messages").to_pylist()]
    frame["n_messages"] = [len(messages) for messages in said]
    frame["last_role"] = [messages[-1]["role"] if messages else None for messages in said]
    conversations = Sheet(
        "conversations",
        frame,
        ("conversation_id",),
        (
            *(
                Present(f"{name}_present", name)
                for name in ("conversation_id", "source", "licence")
            ),
            Unique("conversation_id_unique", "conversation_id"),
            Between("messages_per_conversation", "n_messages", 2, bounds.max_messages),
            Present("last_role_present", "last_role"),
            OneOf("assistant_has_the_last_word", "last_role", ("assistant",)),
        ),
    )
    messages = _messages(frame["conversation_id"].tolist(), said)
    return [conversations, _by_message(messages, bounds), _whole(frame, messages, bounds)]


def _messages(names: list[str], said: list[list[dict[str, str]]]) -> pd.DataFrame:
    """A row a message, with the role that its place asks for."""
    rows = [
        {"conversation_id": name, "message": place, **message, "wanted_role": wanted}
        for name, messages in zip(names, said, strict=True)
        for place, (message, wanted) in enumerate(zip(messages, _wanted(messages), strict=True))
    ]
    columns = ["conversation_id", "message", "role", "content", "wanted_role"]
    return pd.DataFrame(rows, columns=columns)


def _wanted(messages: list[dict[str, str]]) -> list[str]:
    first = int(bool(messages) and messages[0]["role"] == "system")
    return ["system"] * first + [
        ("user", "assistant")[place % 2] for place in range(len(messages) - first)
    ]


def _by_message(frame: pd.DataFrame, bounds: MessageBounds) -> Sheet:
    content = frame["content"].astype("str").where(frame["content"].notna(), "")
    shown = frame.assign(
        content=frame["content"].where(frame["content"].isna(), "…"),
        visible_chars=content.str.strip().str.len(),
        control_share=content.str.count(_CONTROL) / content.str.len().clip(lower=1),
        out_of_turn=(frame["role"] != frame["wanted_role"]).astype(int),
    )
    return Sheet(
        "messages",
        shown,
        ("conversation_id", "message"),
        (
            Present("role_present", "role"),
            Present("content_present", "content"),
            OneOf("role_known", "role", ROLES),
            Between("roles_alternate", "out_of_turn", 0, 0),
            Between("content_not_blank", "visible_chars", low=1),
            Between("content_readable", "control_share", high=bounds.max_control_share),
        ),
    )


def _whole(frame: pd.DataFrame, messages: pd.DataFrame, bounds: MessageBounds) -> Sheet:
    answers = messages.loc[messages["role"] == "assistant", "content"]
    return facts(
        [
            Fact("n_conversations", len(frame), low=bounds.min_conversations),
            Fact("n_distinct_answers", answers.nunique(), low=bounds.min_distinct_answers),
        ]
    )
