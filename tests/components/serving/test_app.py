"""Routes answer what was asked, by block if wanted, and refuse with value, limit and way out."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from components.explaining.opened import Opened
from components.explaining.requests import GenerateRequest
from components.explaining.writing import generate
from tests.components.serving.asking import client, text


@pytest.fixture(scope="module")
def ask(opened: Opened) -> Iterator[TestClient]:
    with client(opened, limits={"new_tokens": 40, "prompt_chars": 150, "wishes": 2}) as asked:
        yield asked


def test_answer_is_what_the_network_writes(ask: TestClient, opened: Opened) -> None:
    body = text(n_new=7, temperature=0.8, seed=3)
    (alone,) = generate(opened, [GenerateRequest.model_validate(body)])
    assert ask.post("/generate", json=body).json() == json.loads(alone.model_dump_json())


def test_stream_tells_growing_text_and_ends_with_the_whole_answer(ask: TestClient) -> None:
    body = text(n_new=20)
    answer = ask.post("/generate", json=body).json()
    sent = ask.post("/generate?stream=true", json=body)
    assert sent.headers["content-type"] == "application/x-ndjson"
    *blocks, last = [json.loads(line) for line in sent.text.splitlines()]
    assert last == {"event": "answer", "kept": "", "answer": answer}
    told = [block["text"] for block in blocks]
    assert told == sorted(told, key=len)
    assert told[-1] == answer["text"]


def test_explanation_comes_with_its_parts_and_adds_up(ask: TestClient) -> None:
    body = {"request": text(n_new=9), "options": {"input_targets": 2, "draws": 20}}
    explanation = ask.post("/explain", json=body).json()
    assert (
        explanation["generation"]["text"]
        == ask.post("/generate", json=text(n_new=9)).json()["text"]
    )
    for token in explanation["tokens"]:
        parts = token["known_logits"] + token["unknown_logits"] + token["residual_logits"]
        assert parts == pytest.approx(token["logit"], abs=1e-4)


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/generate", text(n_new=0), 422, "^0 new tokens .*; ask for at least 1"),
        ("/generate", text(n_new=41), 422, "n_new is 41 tokens, .* limit is 40; ask for fewer"),
        ("/generate", text("the " * 40), 422, "has 160 characters, .* limit is 150; shorten"),
        ("/generate", text("the " * 30, n_new=40), 422, "the network reads 64 at most; shorten"),
        ("/generate", text(" "), 422, "the prompt is empty"),
        ("/generate", text(n_new=-1), 422, "sampling.n_new: .* equal to 0; it is -1"),
        ("/generate", text(temperature=-1), 422, "temperature: .*; it is -1"),
        ("/generate", text("rain \ud800"), 422, "half of a surrogate pair at character 5"),
        ("/generate", text(seed=2**64), 422, "sampling.seed: .* less than 18446744073709551616"),
        ("/generate", {**text(), "\ud800": 1}, 422, "valid string"),
        ("/generate", {**text(), "top_q": 1}, 422, "top_q: Extra inputs are not permitted"),
        ("/explain", {"request": text(), "options": {"draws": 10**9}}, 422, "limit is 10000"),
        ("/steer", {"request": text(), "wishes": []}, 422, "wishes: .* at least 1 item"),
    ],
)  # fmt: skip
def test_refusal_says_the_value_the_limit_and_the_way_out(
    ask: TestClient, path: str, body: dict, status: int, said: str
) -> None:
    headers = {"Content-Type": "application/json"}
    refused = ask.post(path, content=json.dumps(body), headers=headers)
    assert refused.status_code == status
    assert re.search(said, refused.json()["message"]), refused.json()


def steering(concept: str, strength: float = 6.0) -> dict:
    wish = {"concept": concept, "action": "suppress", "strength_logits": strength}
    options = {"input_targets": 0, "draws": 5}
    return {"request": text(n_new=8), "wishes": [wish], "options": options}


def test_comparison_has_both_texts_and_no_strength_leaves_them_alike(ask: TestClient) -> None:
    steered = ask.post("/steer", json=steering("rain")).json()
    assert steered["before"]["generation"] == ask.post("/generate", json=text(n_new=8)).json()
    unmoved = ask.post("/steer", json=steering("rain", 0.0)).json()
    assert unmoved["changed_tokens_share"] == 0.0


def test_unknown_concept_is_told_with_names_that_are_near(ask: TestClient) -> None:
    for stream in ("", "?stream=true"):
        refused = ask.post(f"/steer{stream}", json=steering("violins"))
        found = refused.json()
        status, problem = (
            (found["status"], found["problem"]) if stream else (refused.status_code, found)
        )
        assert (status, problem["error"]) == (404, "unknown_concept")
        assert problem["candidates"][0] == "violin"


def test_strength_without_measure_is_refused(ask: TestClient) -> None:
    refused = ask.post("/steer", json=steering("rain", 1e9))
    assert refused.status_code == 422
    assert "1e+09" in refused.json()["message"] or "1000000000" in refused.json()["message"]
    assert "100" in refused.json()["message"]


def test_kept_answer_is_found_again_after_a_restart(opened: Opened, tmp_path: Path) -> None:
    with client(opened, keep=str(tmp_path)) as ask:
        answered = ask.post("/steer", json=steering("rain"))
        place = answered.headers["content-location"]
        streamed = ask.post("/steer?stream=true", json=steering("rain"))
    assert json.loads(streamed.text.splitlines()[-1])["kept"] == place.split("/")[2]
    with client(opened, keep=str(tmp_path)) as ask:
        assert ask.get(place).content == answered.content
        page = ask.get(place.replace("answer.json", "page.html"))
    assert page.text.startswith("<!doctype html>")
    assert "script-src" not in page.headers["content-security-policy"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_number_that_is_none_is_refused(ask: TestClient, number: str) -> None:
    body = json.dumps(text(temperature=7)).replace("7", number)
    refused = ask.post("/generate", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 422
    assert "finite number" in refused.json()["message"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("{", 422, "is no JSON"),
        ("[" * 200_000, 400, "error parsing the body"),
        ('{"prompt": ' + "9" * 5000 + "}", 400, "error parsing the body"),
        ("null", 422, "dictionary"),
    ],
)
def test_body_that_is_no_request_is_refused(
    ask: TestClient, body: str, status: int, said: str
) -> None:
    refused = ask.post("/generate", content=body, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["error"]) == (status, "invalid")
    assert said in refused.json()["message"]


@pytest.mark.parametrize(
    "path", ["/page/..%2fapp.py", "/page/../../app.py", "/page/%2e%2e/bearer.py", "/page/app.py",
             "/kept/..%2f..%2fetc/answer.json", "/kept/../answer.json", "/kept/x/..%2f.lock"],
)  # fmt: skip
def test_path_out_of_the_folder_is_not_found(ask: TestClient, path: str) -> None:
    refused = ask.get(path)
    assert refused.status_code == 404
    assert "import" not in refused.text


def test_concepts_are_found_by_name(ask: TestClient) -> None:
    found = ask.get("/concepts", params={"q": "Viol", "limit": 3}).json()
    assert found["concepts"][0]["name"] == "violin"
    assert len(ask.get("/concepts", params={"limit": 4}).json()["concepts"]) == 4
    assert ask.get("/concepts", params={"q": "x" * 201}).status_code == 422
    assert ask.get("/concepts", params={"limit": 0}).status_code == 422


def test_special_tokens_and_markup_in_a_prompt_stay_text(ask: TestClient) -> None:
    hostile = "<|mask|><script>alert(1)</script>"
    answer = ask.post("/generate", json=text(hostile)).json()
    assert answer["request"]["prompt"] == hostile
    assert "<|mask|>" not in answer["prompt_tokens"]


def test_health_tells_what_is_loaded_and_the_limits(ask: TestClient, opened: Opened) -> None:
    health = ask.get("/healthz").json()
    assert health["is_ready"]
    assert health["loaded"]["checkpoint"] == opened.digest
    assert health["loaded"]["n_known"] == 6
    assert health["limits"]["new_tokens"] == 40
    assert (health["asks_for_token"], health["keeps"]) == (False, False)


def test_figures_count_by_route_and_reason(opened: Opened) -> None:
    with client(opened) as ask:
        ask.post("/generate", json=text(n_new=6))
        ask.post("/generate", json=text(n_new=-1))
        for number in range(3):
            ask.get(f"/nothing/{number}")
        figures = ask.get("/metrics").text
    for line in (
        'clearstory_requests_total{route="/generate",status="200"} 1.0',
        'clearstory_requests_total{route="/generate",status="422"} 1.0',
        'clearstory_requests_total{route="none",status="404"} 3.0',
        'clearstory_rejected_total{reason="invalid"} 1.0',
        "clearstory_generated_tokens_total 6.0",
        "clearstory_batch_rows_count 1.0",
        "clearstory_queue_depth 0.0",
    ):
        assert line in figures.splitlines(), line


def test_openapi_describes_every_route_and_its_refusals(ask: TestClient) -> None:
    described = ask.get("/openapi.json").json()["paths"]
    assert set(described) == {
        "/generate", "/explain", "/steer", "/concepts", "/healthz", "/metrics",
    }  # fmt: skip
    responses = described["/steer"]["post"]["responses"]
    assert {"200", "404", "409", "413", "422", "429", "503", "504"} <= set(responses)
    assert responses["429"]["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")


def test_operators_guide_names_the_routes_and_figures_there_are(ask: TestClient) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()
    routes = set(re.findall(r"`(?:GET|POST) (/\w+)", guide))
    assert routes == {*ask.get("/openapi.json").json()["paths"], "/kept"}
    told = set(re.findall(r"clearstory_\w+", guide))
    figures = set(re.findall(r"# TYPE (clearstory_\w+)", ask.get("/metrics").text))
    assert told == {name for name in figures if not name.endswith("_created")}


def test_fault_of_ours_is_told_without_its_traceback(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("inner matter")

    monkeypatch.setattr("components.serving.network.generate", breaks)
    with client(opened) as ask:
        failed = ask.post("/generate", json=text())
        last = json.loads(ask.post("/generate?stream=true", json=text()).text)
        assert ask.get("/healthz").status_code == 200
    assert (failed.status_code, last["status"]) == (500, 500)
    assert "inner matter" not in failed.text
    assert last["problem"] == failed.json()
