"""Data sets of the `datasets` library: what a person meets when one cannot be read."""

import json

import datasets
import pytest

from components.corpus.config import HubSource
from components.corpus.readers import hub
from components.corpus.readers.folder import CorpusError


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def source(name, **changes):
    given = {"domain": "web", "licence": "ODC-By-1.0", "max_bytes": 10} | changes
    return HubSource.model_validate({"name": str(name), **given})


@pytest.fixture
def folder(tmp_path):
    rows = [{"content": "It rises.", "title": "Tide"}, {"content": "It falls."}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_rows_come_in_order_with_their_place(folder):
    found = list(hub.read(source(folder, text_column="content")))
    assert [record.text for record in found] == ["It rises.", "It falls."]
    assert [record.title for record in found] == ["Tide", "default/train:1"]


def test_a_data_set_that_cannot_be_reached_says_how_to_fetch_it():
    wanted = source("allenai/olmo-mix-1124", subset="pes2o")
    with pytest.raises(CorpusError, match=r"olmo-mix-1124 \(subset pes2o\).*HF_TOKEN.*download"):
        next(hub.read(wanted))


def test_a_wrong_column_names_those_there_are(folder):
    with pytest.raises(CorpusError, match=r"no column 'text'; it has \['content', 'title'\]"):
        next(hub.read(source(folder)))


def test_a_wrong_subset_names_those_there_are(folder):
    with pytest.raises(CorpusError, match=r"'nope' not found.*default"):
        next(hub.read(source(folder, subset="nope")))


def test_a_loading_script_is_not_run(tmp_path):
    script = tmp_path / f"{tmp_path.name}.py"
    script.write_text("raise SystemExit('it ran')")
    with pytest.raises(CorpusError, match="name a data set of plain files"):
        next(hub.read(source(tmp_path)))
