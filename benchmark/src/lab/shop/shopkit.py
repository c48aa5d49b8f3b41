"""What the three services of the shop share: HTTP, metrics, logs, configuration and calls.

Python's standard library only. A release carries its own copy, so a release is whole.
"""

import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback

SERVICE = os.environ["SHOP_SERVICE"]
INSTANCE = os.environ["SHOP_INSTANCE"]
VERSION = os.path.basename(os.path.dirname(os.path.abspath(__file__)))
LOG_PATH = os.environ["SHOP_LOG"]
LOG_MAX_BYTES = 16 * 1024 * 1024
BODY_MAX_BYTES = 4 * 1024 * 1024
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def read_config(path):
    """Reads the flat `key = value` lines of a configuration file."""
    values = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, equals, value = line.partition("=")
            if not equals or key.lstrip().startswith("#"):
                continue
            values[key.strip()] = json.loads(value.split(" #")[0].strip())
    return values


CONFIG = read_config(os.environ["SHOP_CONFIG"])


class Log:
    """Appends lines to the log file of this instance; one write for one record."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.file = open(path, "ab", buffering=0)

    def write(self, level, message, trace=None, **fields):
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        pairs = "".join(" %s=%s" % (k, quoted(v)) for k, v in fields.items())
        millis = int(now * 1000) % 1000
        text = "%s.%03dZ %s %s %s%s\n" % (stamp, millis, level, INSTANCE, message, pairs)
        if trace:
            text += trace
        with self.lock:
            if self.file.tell() > LOG_MAX_BYTES:
                os.replace(self.path, self.path + ".1")
                self.file = open(self.path, "ab", buffering=0)
            self.file.write(text.encode("utf-8", "replace"))


def quoted(value):
    text = str(value)
    if text and all(c.isalnum() or c in "-_.:/@" for c in text):
        return text
    return json.dumps(text)


LOG = Log(LOG_PATH)


class Metrics:
    """Counters, gauges and histograms, shown as Prometheus text."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counters = {}
        self.histograms = {}
        self.gauges = {}

    def count(self, name, labels, amount=1):
        with self.lock:
            key = (name, labels)
            self.counters[key] = self.counters.get(key, 0) + amount

    def observe(self, name, labels, seconds):
        with self.lock:
            row = self.histograms.setdefault((name, labels), [0] * (len(BUCKETS) + 2))
            for index, bound in enumerate(BUCKETS):
                if seconds <= bound:
                    row[index] += 1
            row[-2] += 1
            row[-1] += seconds

    def gauge(self, name, read):
        self.gauges[name] = read

    def page(self):
        out = []
        with self.lock:
            for (name, labels), value in sorted(self.counters.items()):
                out.append("%s{%s} %d" % (name, labels, value))
            for (name, labels), row in sorted(self.histograms.items()):
                for index, bound in enumerate(BUCKETS):
                    out.append('%s_bucket{%s,le="%s"} %d' % (name, labels, bound, row[index]))
                out.append('%s_bucket{%s,le="+Inf"} %d' % (name, labels, row[-2]))
                out.append("%s_sum{%s} %.6f" % (name, labels, row[-1]))
                out.append("%s_count{%s} %d" % (name, labels, row[-2]))
        for name, read in sorted(self.gauges.items()):
            out.append("%s %s" % (name, read()))
        out.append('build_info{version="%s"} 1' % VERSION)
        return "\n".join(out) + "\n"


METRICS = Metrics()
STARTED = time.time()
IN_FLIGHT = [0]


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


METRICS.gauge("process_resident_memory_bytes", resident_bytes)
METRICS.gauge("process_memory_limit_bytes", lambda: CONFIG["memory_max_mb"] * 1024 * 1024)
METRICS.gauge("process_start_time_seconds", lambda: "%.3f" % STARTED)
METRICS.gauge("http_requests_in_flight", lambda: IN_FLIGHT[0])


class HttpError(Exception):
    """An answer that is not a success, with its status code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class UpstreamError(HttpError):
    """A service that this one calls did not answer, or answered with a failure."""


def call(peer, path, body, timeout=1.0):
    """Calls another service and returns its JSON answer."""
    address = CONFIG["peer_" + peer]
    started = time.monotonic()
    code = "error"
    try:
        status, answer = post(address, path, json.dumps(body).encode(), timeout)
        code = str(status)
    except socket.timeout as error:
        code = "timeout"
        raise UpstreamError(504, "%s %s: no answer within %.1fs" % (peer, path, timeout)) from error
    except OSError as error:
        raise UpstreamError(502, "%s %s: %s" % (peer, path, error)) from error
    finally:
        seconds = time.monotonic() - started
        METRICS.count("upstream_requests_total", 'peer="%s",code="%s"' % (peer, code))
        METRICS.observe("upstream_request_duration_seconds", 'peer="%s"' % peer, seconds)
    if status >= 400:
        raise UpstreamError(502, "%s %s answered %d: %s" % (peer, path, status, answer.get("error", "")))
    return answer


def post(address, path, body, timeout):
    host, _, port = address.rpartition(":")
    head = "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    deadline = time.monotonic() + timeout
    with socket.create_connection((host, int(port)), timeout) as conn:
        conn.sendall((head % (path, address, len(body))).encode() + body)
        chunks = []
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise socket.timeout("timed out")
            conn.settimeout(left)
            chunk = conn.recv(65536)
            if not chunk:
                break
            chunks.append(chunk)
    head, _, rest = b"".join(chunks).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2:
        raise ConnectionError("empty answer")
    return int(words[1]), json.loads(rest or b"{}")


def read_request(file):
    """Reads one request: method, path and body."""
    words = file.readline(4096).decode("latin-1").split()
    if len(words) < 2:
        return None
    length = 0
    for _ in range(64):
        line = file.readline(4096)
        if line in (b"\r\n", b"\n", b""):
            break
        key, _, value = line.partition(b":")
        if key.strip().lower() == b"content-length":
            length = int(value)
    if length > BODY_MAX_BYTES:
        raise HttpError(413, "body too large")
    return words[0], words[1].partition("?")[0], file.read(length) if length else b""


def respond(conn, code, body, kind="application/json"):
    head = "HTTP/1.1 %d -\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    conn.sendall((head % (code, kind, len(body))).encode() + body)


def serve_one(conn, routes):
    """Answers the one request of a connection."""
    with conn:
        conn.settimeout(5)
        try:
            request = read_request(conn.makefile("rb"))
            if request is None:
                return
            method, path, body = request
            if path == "/metrics":
                respond(conn, 200, METRICS.page().encode(), "text/plain; version=0.0.4")
                return
            code, answer = dispatch(routes, method, path, body)
            respond(conn, code, json.dumps(answer).encode())
        except OSError:
            pass  # The caller has gone: there is nobody left to answer.


def dispatch(routes, method, path, body):
    handler = routes.get((method, path))
    if handler is None:
        return 404, {"error": "no such route"}
    started = time.monotonic()
    IN_FLIGHT[0] += 1
    try:
        code, answer = handler(json.loads(body or b"{}"))
    except HttpError as error:
        code, answer = error.code, {"error": str(error)}
        if code >= 500:
            report(path, code, error)
    except Exception as error:
        code, answer = 500, {"error": "internal error"}
        report(path, code, error)
    finally:
        IN_FLIGHT[0] -= 1
    METRICS.count("http_requests_total", 'route="%s",code="%d"' % (path, code))
    METRICS.observe("http_request_duration_seconds", 'route="%s"' % path, time.monotonic() - started)
    return code, answer


TRACE_EVERY_S = 0.5
LAST_TRACE = {}


def report(path, code, error):
    """Logs a failure. What nobody expected comes with its trace, but not hundreds of times."""
    kind = type(error).__name__
    trace = None
    now = time.monotonic()
    if not isinstance(error, HttpError) and now - LAST_TRACE.get(kind, 0) >= TRACE_EVERY_S:
        LAST_TRACE[kind] = now
        trace = traceback.format_exc()
    LOG.write("ERROR", "request failed", trace, route=path, code=code, error="%s: %s" % (kind, error))


def exit_with_supervisor():
    """Ends this process when the supervisor that started it is gone."""
    parent = os.getppid()
    while True:
        time.sleep(1)
        if os.getppid() != parent:
            os._exit(0)


def run(routes):
    """Serves the routes on the listening socket that the supervisor passed as standard input."""
    listener = socket.socket(fileno=0)
    listener.setblocking(False)
    wake_read, wake_write = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(wake_write, b"x"))
    threading.Thread(target=exit_with_supervisor, daemon=True).start()
    port = listener.getsockname()[1]
    LOG.write("INFO", "started", version=VERSION, port=port, python="%d.%d" % sys.version_info[:2])
    os.write(1, b"ready\n")
    while True:
        ready, _, _ = select.select([listener, wake_read], [], [])
        if wake_read in ready:
            break
        try:
            conn, _ = listener.accept()
        except OSError:
            continue  # Another process on the same socket was quicker.
        threading.Thread(target=serve_one, args=(conn, routes), daemon=True).start()
    deadline = time.monotonic() + 1.5
    while IN_FLIGHT[0] > 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.05)
    LOG.write("INFO", "stopped", version=VERSION)
