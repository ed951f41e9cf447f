"""A network whose forward passes are held until they may go on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from components.explaining.opened import Opened


class Brake:
    """Holds every forward pass of a network until it may go on, and counts them."""

    def __init__(self) -> None:
        self.may_go_on, self.has_begun, self.n_passes = threading.Event(), threading.Event(), 0

    def __call__(self, *_: object) -> None:
        self.n_passes += 1
        self.has_begun.set()
        assert self.may_go_on.wait(10)


@contextmanager
def held(opened: Opened) -> Iterator[Brake]:
    """A network whose passes are held."""
    brake = Brake()
    hook = opened.lm.backbone.register_forward_pre_hook(brake)
    try:
        yield brake
    finally:
        brake.may_go_on.set()
        hook.remove()
