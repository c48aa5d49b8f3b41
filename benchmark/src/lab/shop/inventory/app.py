"""Inventory: knows the stock, puts goods aside and books warehouse counts."""

import json
import os
import resource
import threading

from journal import Journal
from shopkit import CONFIG, LOG, METRICS, HttpError, run

DATA = CONFIG["data_dir"]
LIMIT = CONFIG["data_limit_bytes"]
SEGMENT_MAX_BYTES = 1024 * 1024
if LIMIT:
    # Without a disk of its own the journal is bounded by a limit on the size of its files.
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))

JOURNAL = Journal(DATA, LIMIT or SEGMENT_MAX_BYTES)
STOCK = {sku: 100_000_000 for sku in ("tea", "mug", "pot", "tin", "set")}
LOCK = threading.Lock()


def disk_size():
    if LIMIT:
        return LIMIT
    stat = os.statvfs(DATA)
    return stat.f_blocks * stat.f_frsize


def disk_free():
    if LIMIT:
        return max(0, LIMIT - os.fstat(JOURNAL.file.fileno()).st_size)
    stat = os.statvfs(DATA)
    return stat.f_bavail * stat.f_frsize


METRICS.gauge("data_disk_size_bytes", disk_size)
METRICS.gauge("data_disk_free_bytes", disk_free)


def reserve(request):
    """Puts the goods of an order aside."""
    for item in request["items"]:
        if STOCK.get(item["sku"], 0) < item.get("count", 1):
            raise HttpError(409, "%s is sold out" % item["sku"])
    JOURNAL.append("reserve %s" % request["order"])
    with LOCK:
        for item in request["items"]:
            STOCK[item["sku"]] -= item.get("count", 1)
    return 200, {"reserved": len(request["items"])}


def book_count(request):
    """Books what the warehouse counted, with the scans it was counted from."""
    JOURNAL.append("count %s %s" % (request["shelf"], json.dumps(request["scans"])))
    LOG.write("INFO", "count booked", shelf=request["shelf"], scans=len(request["scans"]))
    return 200, {"shelf": request["shelf"]}


def show_stock(_):
    """Shows the stock."""
    return 200, dict(STOCK)


run(
    {
        ("POST", "/reserve"): reserve,
        ("POST", "/counts"): book_count,
        ("GET", "/stock"): show_stock,
    }
)
