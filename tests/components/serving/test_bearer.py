"""A token comes from where a reference points, and nothing but the token is let in."""

from pathlib import Path

import pytest

from components.serving import bearer

TOKEN = "0123456789abcdef-token"


def test_token_is_read_from_a_file_and_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("SERVE_TOKEN", TOKEN)
    assert bearer.read(f"file:{tmp_path / 'token'}") == TOKEN.encode()
    assert bearer.read("env:SERVE_TOKEN") == TOKEN.encode()
    assert bearer.read("") == b""


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("env:NOT_SET", "has 0 characters; it needs 16"),
        ("file:/not/there", "cannot be read"),
        (TOKEN, "file:PATH or env:NAME"),
    ],
)
def test_missing_token_is_refused_and_never_shown(reference: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        bearer.read(reference)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("header", "granted"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN}", True),
        (f"Basic {TOKEN}", False),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (TOKEN, False),
        ("Bearer é", False),
        ("", False),
    ],
)
def test_only_the_whole_token_is_granted(header: str, granted: bool) -> None:
    assert bearer.grants(TOKEN.encode(), header) is granted
