"""The journal of stock movements: append only, in segments."""

import os
import threading

KEEP_SEGMENTS = 256


class Journal:
    """Appends records; a segment that is full is closed and kept for the auditors."""

    def __init__(self, folder, segment_max_bytes):
        self.folder = folder
        self.segment_max_bytes = segment_max_bytes
        self.lock = threading.Lock()
        os.makedirs(folder, exist_ok=True)
        self.number = max([int(n[8:-4]) for n in self.segments()] or [0])
        self.open_segment()

    def segments(self):
        return sorted(n for n in os.listdir(self.folder) if n.startswith("journal-"))

    def open_segment(self):
        name = "journal-%06d.log" % self.number
        self.file = open(os.path.join(self.folder, name), "ab", buffering=0)

    def append(self, record):
        """Writes one record; it is on disk when this returns."""
        data = record.encode("utf-8") + b"\n"
        with self.lock:
            if self.file.tell() > self.segment_max_bytes:
                self.file.close()
                self.number += 1
                self.open_segment()
                self.drop_oldest()
            while data:
                data = data[self.file.write(data):]

    def drop_oldest(self):
        for name in self.segments()[:-KEEP_SEGMENTS]:
            os.remove(os.path.join(self.folder, name))
