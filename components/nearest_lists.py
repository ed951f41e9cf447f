"""Inverted lists in a file of their own, memory-mapped (paper B.1).

    index.faiss       lists' centroids, rotation and codebooks, settings of search; no rows
    lists.bin         each list's codes and row numbers, one list after the other
    lists.npy         rows in each list
    rows.npy          whole rows, where the lists hold codes alone

An index of few rows is `index.faiss` alone. Files are opened where they lie: FAISS's own reader
wants the path at which the lists were written, and crashes in 1.15 where the lists of such a file
are asked to be mapped (IO_FLAG_MMAP).

Shape suffixes: L inverted list
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import faiss
import numpy as np

from components import nearest_rows
from components.nearest import CorruptIndexError, VectorIndex, load
from components.nearest_rows import RefineRows

TABLE_FILE, LISTS_FILE, LENGTHS_FILE = "index.faiss", "lists.bin", "lists.npy"
ROWS_FILE = "rows.npy"
FILES = (TABLE_FILE, LISTS_FILE, LENGTHS_FILE, ROWS_FILE)
_NUMBER_BYTES = 8


def open_index(folder: Path, kind: str, n_candidates: int) -> VectorIndex:
    """The index of a folder: lists and rows are read as a search needs them."""
    table = load(folder / TABLE_FILE, kind).table
    if (folder / LISTS_FILE).is_file():
        _attach(table, folder)
    rows: RefineRows | None = None
    if (folder / ROWS_FILE).is_file():
        rows = nearest_rows.open_rows(folder / ROWS_FILE, n_candidates)
        if len(rows.stored_ND) != table.ntotal:
            raise CorruptIndexError(
                f"{folder / ROWS_FILE} has {len(rows.stored_ND)} rows but the lists beside it have "
                f"{table.ntotal}: they belong to different indexes. Build it again"
            )
    return VectorIndex(table, kind, rows)


def n_probed(index: VectorIndex) -> int:
    """Lists that a search reads; 1 where the whole index is one."""
    lists = faiss.try_extract_index_ivf(index.table)
    return 1 if lists is None else int(lists.nprobe)


def write(table: faiss.Index, path: Path) -> Path:
    """Write a table whole or not at all."""
    partial = path.with_suffix(".partial")
    faiss.write_index(table, str(partial))
    partial.rename(path)
    return path


def open_part(path: Path) -> faiss.Index:
    """A shard, or the table of an index, to be merged: its lists are mapped, not read."""
    if path.name == TABLE_FILE:
        return open_index(path.parent, "", 1).table
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except RuntimeError as error:
        raise CorruptIndexError(
            f"{path} is no shard of an index; delete it and build again"
        ) from error


def emptied(table: faiss.Index) -> faiss.Index:
    """The table with its training and without its rows."""
    lists = faiss.try_extract_index_ivf(table)
    if lists is None:
        return faiss.IndexFlatIP(table.d)
    _replace(table, faiss.ArrayInvertedLists(lists.nlist, lists.code_size), n=0)
    return table


def merge_lists(tables: Sequence[faiss.Index], folder: Path) -> None:
    """Write the lists of all tables one after the other, and how long each is."""
    every = [faiss.extract_index_ivf(table) for table in tables]
    several = faiss.InvertedListsPtrVector()  # type: ignore[attr-defined]  # its stubs lack it
    n_rows_L = np.zeros(every[0].nlist, dtype=np.uint64)
    for one in every:
        several.push_back(one.invlists)
        n_rows_L += _lengths(one)
    path = folder / LISTS_FILE
    path.unlink(missing_ok=True)
    stored = faiss.OnDiskInvertedLists(every[0].nlist, every[0].code_size, str(path))
    with _quiet():
        stored.merge_from_multiple(several.data(), several.size())
    np.save(folder / LENGTHS_FILE, n_rows_L)


def _lengths(lists: faiss.IndexIVF) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    stored = lists.invlists
    assert stored is not None
    return np.fromiter((stored.list_size(at) for at in range(lists.nlist)), dtype=np.uint64)


def _attach(table: faiss.Index, folder: Path) -> None:
    lists, path = faiss.extract_index_ivf(table), folder / LISTS_FILE
    n_rows_L = np.load(folder / LENGTHS_FILE)
    n = int(n_rows_L.sum())
    n_bytes = n * (lists.code_size + _NUMBER_BYTES)
    if len(n_rows_L) != lists.nlist or path.stat().st_size != n_bytes:
        raise CorruptIndexError(
            f"{path} has {path.stat().st_size} bytes, but {n} rows in {len(n_rows_L)} lists of "
            f"{folder / TABLE_FILE} ({lists.nlist} lists) take {n_bytes}. Build it again"
        )
    stored = faiss.OnDiskInvertedLists()
    stored.nlist, stored.code_size, stored.filename = lists.nlist, lists.code_size, str(path)
    stored.lists.resize(lists.nlist)  # type: ignore[attr-defined]  # a vector of C++
    stored.set_all_lists_sizes(faiss.swig_ptr(n_rows_L))
    stored.totsize, stored.read_only = n_bytes, True
    stored.do_mmap()
    _replace(table, stored, n=n)


def _replace(table: faiss.Index, stored: faiss.InvertedLists, n: int) -> None:
    lists = faiss.extract_index_ivf(table)
    lists.own_invlists = False
    lists.replace_invlists(stored)
    lists.own_invlists = True
    stored.this.disown()  # type: ignore[attr-defined]  # the table frees it
    table.ntotal = lists.ntotal = n


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what FAISS prints of a file that grows, past Python, on standard output."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
