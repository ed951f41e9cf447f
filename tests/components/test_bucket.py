"""What an S3 service answers, over real connections, and what it means for another try."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from components.retries import InterruptedTransferError, StorageError
from components.storage import StorageConfig
from components.store import S3Bucket

CONTENT = bytes(range(40))


class Answers(BaseHTTPRequestHandler):
    """Gives the server's one answer to every request."""

    def do_GET(self):
        status, sent = self.server.answer
        body = CONTENT if status == 206 else b"<Error><Code>Code</Code></Error>"
        self.send_response(status)
        self.send_header("ETag", '"first"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def service():
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def bucket(service, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "reader")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    address = f"http://127.0.0.1:{service.server_port}"
    found = S3Bucket("corpus", StorageConfig(endpoint_url=address))
    yield found
    found.close()


def test_a_whole_body_arrives(service, bucket):
    service.answer = (206, 40)
    assert bucket.get("a/f", 0, 40, '"first"') == CONTENT


@pytest.mark.parametrize(
    "answer", [(503, 99), (500, 99), (429, 99), (206, 7)], ids=["503", "500", "429", "cut"]
)
def test_a_busy_service_and_a_cut_body_may_be_tried_again(service, bucket, answer):
    service.answer = answer
    with pytest.raises(InterruptedTransferError, match="s3://corpus/a/f"):
        bucket.get("a/f", 0, 40, '"first"')


def test_a_service_that_is_not_there_may_be_tried_again(bucket, service):
    nobody = StorageConfig(endpoint_url="http://127.0.0.1:1")
    other = S3Bucket("corpus", nobody)
    with pytest.raises(InterruptedTransferError, match="connect"):
        other.head("a/f")
    other.close()


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "keys are wrong"), (404, "no such object"), (412, "replaced"), (400, "refused")],
)
def test_a_refusal_is_final_and_says_what_to_do(service, bucket, status, said):
    service.answer = (status, 99)
    with pytest.raises(StorageError, match=f"s3://corpus/a/f.*{said}") as caught:
        bucket.get("a/f", 0, 40, '"first"')
    assert not isinstance(caught.value, InterruptedTransferError)
