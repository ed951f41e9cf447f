"""Ranged reads: what is asked for, what is tried again, and what is given up at once."""

import hashlib

import pytest

from components.ranged import (
    FolderPlace,
    Head,
    Range,
    S3Place,
    coalesced,
)
from components.retries import InterruptedTransferError, StorageError
from components.storage import StorageConfig

CONTENT = bytes(range(200))
CONFIG = StorageConfig(
    parallel_reads=2, attempts=4, first_wait_seconds=1.0, longest_wait_seconds=3.0,
    coalesce_bytes=10,
)  # fmt: skip


class FaultyBucket:
    """Objects in memory; each request first goes through the next fault, if there is one."""

    def __init__(self, faults=(), sha256="", content=CONTENT):
        self.faults, self.sha256, self.content = list(faults), sha256, content
        self.asked = []
        self.etag = "first"

    def __str__(self):
        return "s3://bucket"

    def close(self):
        pass

    def head(self, key):
        self.asked.append(("head", key))
        return Head(len(self.content), self.etag, self.sha256)

    def get(self, key, start, n_bytes, etag):
        self.asked.append((key, start, n_bytes))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, int):
            return self.content[start : start + n_bytes][:fault]
        if fault is not None:
            raise fault
        if etag != self.etag:
            raise StorageError(f"{key}: 412. The object was replaced since it was opened")
        return self.content[start : start + n_bytes]


@pytest.fixture
def opened(tmp_path):
    places = []

    def make(bucket, waits=None):
        slept = [] if waits is None else waits
        places.append(S3Place(bucket, "a/b/", tmp_path / "cache", CONFIG, sleep=slept.append))
        return places[-1]

    yield make
    for place in places:
        place.close()


def test_near_ranges_are_read_as_one():
    ranges = [Range("f", 50, 5), Range("f", 0, 10), Range("g", 12, 4), Range("f", 20, 2)]
    assert coalesced(ranges, 10) == [Range("f", 0, 22), Range("f", 50, 5), Range("g", 12, 4)]
    assert coalesced([Range("f", 0, 30), Range("f", 5, 5)], 0) == [Range("f", 0, 30)]


def test_ranges_come_back_in_the_order_they_were_asked_for(opened, tmp_path):
    (tmp_path / "f").write_bytes(CONTENT)
    ranges = [Range("f", 150, 3), Range("f", 0, 4), Range("f", 6, 2), Range("f", 0, 4)]
    expected = [CONTENT[r.start : r.end] for r in ranges]
    assert FolderPlace(tmp_path).read(ranges) == expected
    bucket = FaultyBucket()
    assert opened(bucket).read(ranges) == expected
    assert sorted(bucket.asked)[:2] == [("a/b/f", 0, 8), ("a/b/f", 150, 3)]


def test_a_busy_store_a_broken_connection_and_a_cut_body_are_tried_again(opened):
    waits = []
    faults = [InterruptedTransferError("503"), InterruptedTransferError("no connection"), 7]
    assert opened(FaultyBucket(faults), waits).read([Range("f", 3, 20)]) == [CONTENT[3:23]]
    assert [0.5 * most <= wait <= most for wait, most in zip(waits, (1, 2, 3), strict=True)] == [
        True, True, True,
    ]  # fmt: skip


def test_a_store_that_never_recovers_is_given_up_with_its_last_word(opened):
    bucket = FaultyBucket([InterruptedTransferError("503 slow down")] * 9)
    with pytest.raises(StorageError, match=r"503 slow down; given up after 4 tries.*Resume later"):
        opened(bucket).read([Range("f", 0, 5)])
    assert len(bucket.faults) == 5


def test_wrong_keys_are_not_tried_again(opened):
    waits = []
    bucket = FaultyBucket([StorageError("403. The keys are wrong")])
    with pytest.raises(StorageError, match="keys are wrong"):
        opened(bucket, waits).read([Range("f", 0, 5)])
    assert waits == []
    assert len(bucket.asked) == 2  # the head and one try


def test_an_object_replaced_while_it_is_read_is_refused(opened):
    bucket = FaultyBucket()
    place = opened(bucket)
    place.read([Range("f", 0, 5)])
    bucket.etag = "second"
    with pytest.raises(StorageError, match="replaced"):
        place.read([Range("f", 5, 5)])


def test_a_range_beyond_the_end_is_refused(opened, tmp_path):
    (tmp_path / "f").write_bytes(CONTENT)
    for place in (opened(FaultyBucket()), FolderPlace(tmp_path)):
        with pytest.raises(StorageError, match=r"f has 4 bytes from byte 196 on, and 8 were"):
            place.read([Range("f", 196, 8)])


def test_the_store_s_own_digest_spares_reading_the_object(opened):
    bucket = FaultyBucket(sha256="ab" * 32)
    assert opened(bucket).digest("f").sha256 == "ab" * 32
    assert bucket.asked == [("head", "a/b/f")]
    plain = opened(FaultyBucket()).digest("f")
    assert (plain.bytes, plain.sha256) == (200, hashlib.sha256(CONTENT).hexdigest())


def test_a_whole_file_is_fetched_once_and_again_when_it_changed(opened, tmp_path):
    bucket = FaultyBucket()
    first = opened(bucket).local("f.json")
    assert first.read_bytes() == CONTENT
    assert opened(bucket).local("f.json") == first
    assert [asked for asked in bucket.asked if asked[0] != "head"] == [("a/b/f.json", 0, 200)]
    bucket.etag, bucket.content = "second", b"new"
    assert opened(bucket).local("f.json").read_bytes() == b"new"
