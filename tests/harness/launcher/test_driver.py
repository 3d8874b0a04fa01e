"""What the launcher asks of the CUDA driver, in which order."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

from harness.backends.triton.launcher.driver import Cuda


class Pageable:
    """A driver whose copies from the host go on after they have returned, until the default stream is waited for."""

    def __init__(self) -> None:
        self.on_the_way = False

    def copy(self, target: ctypes.c_ulonglong, source: object, count: ctypes.c_size_t) -> int:
        """``cuMemcpyHtoD``: the last part may still be on the way."""
        self.on_the_way = True
        return 0

    def wait(self, stream: ctypes.c_void_p) -> int:
        """``cuStreamSynchronize``."""
        if not stream.value:
            self.on_the_way = False
        return 0


def test_an_upload_has_arrived_when_it_returns():
    driver = Pageable()
    cuda = object.__new__(Cuda)
    cuda._lib = SimpleNamespace(cuMemcpyHtoD_v2=driver.copy, cuStreamSynchronize=driver.wait)
    cuda.upload(1 << 21, (ctypes.c_char * 4)(), 4)
    assert not driver.on_the_way
