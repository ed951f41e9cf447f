"""A real S3 server for tests: `weed server` on free ports, with one pair of keys."""

import json
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3
from botocore.config import Config

KEY, SECRET = "reader", "made-up-secret"
STARTS_WITHIN_TRIES = 600


@contextmanager
def server(folder: Path, bucket: str) -> Iterator[str]:
    """The address of a running server that has an empty bucket."""
    weed = Path(sys.executable).parent / "weed"
    identity = {
        "name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "List", "Write"],
    }  # fmt: skip
    (folder / "data").mkdir(parents=True)
    (folder / "keys.json").write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, s3 = free_ports(4)
    command = [
        str(weed), "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
        "-s3", f"-s3.port={s3}", f"-s3.config={folder / 'keys.json'}",
        "-volume.max=20", "-master.volumeSizeLimitMB=64",
    ]  # fmt: skip
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
        try:
            address = f"http://127.0.0.1:{s3}"
            _make_bucket(process, address, bucket, folder / "output.txt")
            yield address
        finally:
            process.kill()  # a graceful end takes half a minute, and the data is thrown away
            process.wait(timeout=20)
            shutil.rmtree(folder / "data", ignore_errors=True)


def free_ports(n: int) -> list[int]:
    """Ports nobody listens on; each server also takes the one 10,000 above for gRPC."""
    with ExitStack() as held:
        found: list[int] = []
        while len(found) < n:
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            if port < 55_000:
                found.append(port)
    return found


def _make_bucket(
    process: "subprocess.Popen[bytes]", address: str, bucket: str, output: Path
) -> None:
    for _ in range(STARTS_WITHIN_TRIES):
        assert process.poll() is None, output.read_text()[-2000:]
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except urllib.error.HTTPError as error:
            error.close()
            break
        except OSError:
            try:
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
    client = boto3.client(
        "s3", endpoint_url=address, region_name="us-east-1", aws_access_key_id=KEY,
        aws_secret_access_key=SECRET, config=Config(retries={"total_max_attempts": 10}),
    )  # fmt: skip
    client.create_bucket(Bucket=bucket)
    client.close()
