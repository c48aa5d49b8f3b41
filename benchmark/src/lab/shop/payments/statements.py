"""Account statements for the back office."""

import threading

LINE = "%06d  card payment  order %s  position %05d  settled, acquirer batch %08d\n"


class Statements:
    """Renders statements and keeps them, so that asking again costs nothing."""

    def __init__(self):
        self.lock = threading.Lock()
        self.cache = {}

    def get(self, account, lines):
        """The statement of an account with that many lines."""
        key = (account, lines)
        with self.lock:
            text = self.cache.get(key)
        if text is None:
            text = "".join(LINE % (n, account, n, n * 7919) for n in range(lines))
            with self.lock:
                self.cache[key] = text
        return text

    def size(self):
        """Number of kept statements."""
        return len(self.cache)
