"""Ctrl-C while ranks train; the other stages are interrupted in tests/chaos."""

import psutil

from tests.pipelines.interrupting import interrupt_in


def test_ctrl_c_in_training_stops_the_ranks_and_prints_the_way_on(walk):
    runs = walk.folder.parent
    name = walk.settings.run_id
    found = interrupt_in("train", ["rerun", name, "--only", "train"], runs)
    assert found.exit_code == 130
    assert f"resume with: clearstory rerun {name} --only train --runs {runs}" in found.output
    assert found.stages["train"].status == "KILLED"
    assert not list((runs / "store" / "attempts").iterdir())
    commands = [
        " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
    ]
    assert not [command for command in commands if str(runs) in command]
