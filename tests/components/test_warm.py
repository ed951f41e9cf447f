from components import warm


def test_a_build_that_was_killed_does_not_hold_up_the_next(tmp_path):
    lock, built = tmp_path / "operator" / "lock", tmp_path / "operator" / "operator.so"
    lock.parent.mkdir()
    for path in (lock, built):
        path.touch()
    warm.unlock(tmp_path)
    assert built.is_file()
    assert not lock.exists()
