"""Independent, numbered pieces of work, side by side: processes here, Ray on a cluster.

A piece leaves its result in a file of its own and does nothing when that is there already. Engines
therefore need not know what was done before; docs/decisions/0007 tells why it is these two.
"""

import contextlib
import importlib.util
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from components import lifeline
from components.engine_config import EngineConfig

Piece = Callable[[int], int]
"""Does the piece of this number and returns it; pickled, so neither a closure nor a lambda."""


class EngineError(RuntimeError):
    """An engine that is not there, or that lost a worker."""


def work(piece: Piece, numbers: Sequence[int], engine: EngineConfig) -> Iterator[int]:
    """Do these pieces; yields each number when its piece is done, in any order.

    What a piece raises is raised here, after which no further piece is begun. Raises EngineError
    where the engine is not installed, before any work, and where a worker died.
    """
    if engine.name == "ray":
        _require_ray()
        return _on_ray(piece, numbers, engine.n_workers)
    if engine.n_workers == 1 or len(numbers) <= 1:
        return (piece(number) for number in numbers)
    return _in_processes(piece, numbers, engine.n_workers)


def _in_processes(piece: Piece, numbers: Sequence[int], n_workers: int) -> Iterator[int]:
    # Fresh processes: a fork of one with threads may hang.
    pool = ProcessPoolExecutor(
        min(n_workers, len(numbers)), multiprocessing.get_context("spawn"),
        initializer=_begin_worker, initargs=(os.getpid(),),
    )  # fmt: skip
    before = set(multiprocessing.active_children())
    try:
        for done in as_completed([pool.submit(piece, number) for number in numbers]):
            yield done.result()
        pool.shutdown()
    except BrokenProcessPool as error:
        raise EngineError(
            f"one of {n_workers} workers died, killed or out of memory. What was finished is kept: "
            f"run again, with fewer workers or smaller batches if memory was short"
        ) from error
    finally:
        # Whoever stops early does not wait for pieces that may take minutes.
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - before:
            worker.terminate()


def _begin_worker(parent: int) -> None:
    lifeline.follow_process(parent, lifeline.end_at_once)


def _require_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise EngineError(
            "engine ray is asked for, but Ray is not installed: pip install -r "
            "requirements-ray.txt, or set the engine's name to processes"
        )


def _on_ray(piece: Piece, numbers: Sequence[int], n_workers: int) -> Iterator[int]:
    import ray
    import ray.data

    def one(row: dict[str, int]) -> dict[str, int]:
        return {"done": piece(row["item"])}

    with contextlib.ExitStack() as stack:
        if not ray.is_initialized():
            # An address in the environment names a cluster, which has workers of its own.
            here = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": n_workers}
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False, **here)
            stack.callback(ray.shutdown)
        ray.data.DataContext.get_current().enable_progress_bars = False
        pieces = ray.data.from_items(list(numbers), override_num_blocks=len(numbers))
        done = pieces.map(one, compute=ray.data.TaskPoolStrategy(size=n_workers))
        yield from (int(row["done"]) for row in done.iter_rows())
