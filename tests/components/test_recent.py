"""Reads kept in memory: the last ones, within the bound."""

from components.ranged import FolderPlace, Range
from components.recent import Recent

ONE, TWO, THREE = Range("f", 0, 6), Range("f", 6, 5), Range("f", 3, 7)


class Counting(FolderPlace):
    """A folder that remembers what was asked of it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.asked = []

    def read(self, ranges):
        self.asked += ranges
        return super().read(ranges)


def test_the_last_ranges_are_not_read_again_and_the_bound_is_never_passed(tmp_path):
    (tmp_path / "f").write_bytes(bytes(range(20)))
    place = Counting(tmp_path)
    recent = Recent(place, max_bytes=12)
    assert recent.read([ONE, TWO, ONE]) == [bytes(range(6)), bytes(range(6, 11)), bytes(range(6))]
    assert place.asked == [ONE, TWO]
    recent.read([ONE])  # now the last one that was read
    assert recent.read([THREE]) == [bytes(range(3, 10))]
    assert recent.n_bytes_kept == 7  # 6 + 5 + 7 are too many, and so are 6 + 7
    place.asked.clear()
    recent.read([THREE, TWO])
    assert place.asked == [TWO]
    assert recent.n_bytes_kept == 12
    recent.close()


def test_a_range_beyond_the_bound_is_read_and_not_kept(tmp_path):
    (tmp_path / "f").write_bytes(bytes(20))
    place = Counting(tmp_path)
    recent = Recent(place, max_bytes=5)
    assert recent.read([ONE]) == recent.read([ONE]) == [bytes(6)]
    assert place.asked == [ONE, ONE]
    assert recent.n_bytes_kept == 0
