"""Payments: charges cards and prints statements."""

import itertools
import random
import time

from shopkit import LOG, METRICS, HttpError, run
from statements import Statements

ACQUIRER_SECONDS = (0.19, 0.23)
LINES_MAX = 10_000
STATEMENTS = Statements()
NUMBERS = itertools.count(100_000)

METRICS.gauge("statement_cache_entries", STATEMENTS.size)


def charge(request):
    """Charges an order at the acquirer, which takes its time."""
    cents = int(request["cents"])
    if cents < 0:
        raise HttpError(400, "negative amount")
    time.sleep(random.uniform(*ACQUIRER_SECONDS))
    receipt = "r-%d" % next(NUMBERS)
    LOG.write("INFO", "charged", order=request["order"], cents=cents, receipt=receipt)
    return 200, {"receipt": receipt}


def statement(request):
    """Prints the statement of an account."""
    lines = min(int(request["lines"]), LINES_MAX)
    text = STATEMENTS.get(str(request["account"]), lines)
    LOG.write("INFO", "statement printed", account=request["account"], lines=lines, bytes=len(text))
    return 200, {"bytes": len(text)}


run({("POST", "/charge"): charge, ("POST", "/statements"): statement})
