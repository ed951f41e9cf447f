import hashlib
import io

import pytest
import torch
from safetensors.torch import load_file

from model import hashed_file
from model.hashed_file import HashedFile, write_tensors


def test_the_digest_is_that_of_the_bytes_on_disk_however_they_came(tmp_path, monkeypatch):
    monkeypatch.setattr(hashed_file, "_PIECE_BYTES", 7)
    monkeypatch.setattr(hashed_file, "_PIECES", 2)
    with HashedFile(tmp_path / "file") as out:
        for n in (0, 1, 7, 8, 50):
            out.write(bytes(range(n)))
    data = (tmp_path / "file").read_bytes()
    assert data == b"".join(bytes(range(n)) for n in (0, 1, 7, 8, 50))
    assert (out.written.bytes, out.written.sha256) == (66, hashlib.sha256(data).hexdigest())


def test_tensors_come_back_through_the_library(tmp_path):
    tensors = {"matrix": torch.randn(3, 5).T, "scalar": torch.tensor(2.0), "none": torch.empty(0)}
    written = write_tensors(tensors, tmp_path / "file")
    found = load_file(tmp_path / "file")
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert written.sha256 == hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest()


def test_what_torch_saves_is_what_torch_reads(tmp_path):
    with HashedFile(tmp_path / "file") as out:
        torch.save({"a": torch.arange(9), "b": "text"}, out)
    found = torch.load(io.BytesIO((tmp_path / "file").read_bytes()))
    assert found["b"] == "text"
    assert torch.equal(found["a"], torch.arange(9))


def test_a_writer_that_fails_leaves_no_digest(tmp_path):
    with pytest.raises(ZeroDivisionError), HashedFile(tmp_path / "file") as out:
        raise ZeroDivisionError
    assert not hasattr(out, "written")
