"""A pool that bounds how many orders are written and charged at the same time."""

import threading
import time
from contextlib import contextmanager

from shopkit import HttpError


class PoolTimeout(HttpError):
    """No connection became free in time."""

    def __init__(self, message):
        super().__init__(503, message)


class Pool:
    """Hands out at most `size` connections; who waits longer than `timeout` seconds is refused."""

    def __init__(self, size, timeout):
        self.size = size
        self.timeout = timeout
        self.free = threading.Semaphore(size)
        self.lock = threading.Lock()
        self.in_use = 0
        self.waiting = 0

    def change(self, in_use, waiting):
        with self.lock:
            self.in_use += in_use
            self.waiting += waiting

    @contextmanager
    def connection(self):
        """Lends a connection for the length of a block."""
        started = time.monotonic()
        self.change(0, 1)
        got = self.free.acquire(timeout=self.timeout)
        self.change(1 if got else 0, -1)
        if not got:
            waited = time.monotonic() - started
            raise PoolTimeout(
                "no pool connection within %.1fs (size=%d in_use=%d waiting=%d)"
                % (waited, self.size, self.in_use, self.waiting)
            )
        try:
            yield
        finally:
            self.change(-1, 0)
            self.free.release()
