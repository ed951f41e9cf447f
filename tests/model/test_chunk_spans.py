"""A text falls into chunks without a token left over."""

from model.chunk_spans import chunk_spans

END = 9


def test_chunks_end_with_their_mark_and_the_last_may_be_open() -> None:
    assert chunk_spans([1, 2, END, 3, END, 4], END) == [slice(0, 3), slice(3, 5), slice(5, 6)]
    assert chunk_spans([END, 1], END) == [slice(0, 1), slice(1, 2)]
    assert chunk_spans([], END) == []
