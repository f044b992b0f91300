#!/usr/bin/env python3
"""What the real binary does when it is told to stop (R-30), when it is asked for ten times what it can do (R-31), and when
callers send much or read little (R-32).

    end2end/load.py [stop] [shed] [upload] [slow] [--seconds 4] [--times 10] [--megabytes 100]
    end2end/load.py shed --long                 (R-31 in full: a minute, and more to compare it with)
    end2end/load.py upload --megabytes 500      (R-32 in full)

R-30: 200 requests are under way and 4 chunks of a batch run when SIGTERM comes. R-31: searches, the work that keeps a
processor busy; first one at a time, then as many as saturate, then ten times that rate whether answers come or not.
R-32: a file is uploaded at full speed, and a caller reads another one a byte a second.
"""

import argparse
import asyncio
import itertools
import json
import os
import pathlib
import signal
import socket
import sqlite3
import statistics
import sys
import time
import urllib.parse

from loupe import Server

FEATURE = "loupe://text_extractor@v1/all_minilm_l6_v2_v1"
# The share of the processors that others may use where times are judged.
BUSY = 0.25
faults = []


def check(figure, what, value, unit, holds, promise, judged=True):
    verdict = "" if holds else "   BROKEN" if judged else "   not judged"
    print(f"{figure}  {what:52} {value:>9.3f} {unit:4} {promise}{verdict}", flush=True)
    if not holds and judged:
        faults.append(what)


def busy(seconds=1.5):
    """The share of the processors that others use: a machine that is busy with something else cannot judge times."""
    def now():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    first = now()
    time.sleep(seconds)
    last = now()
    return 1 - (last[1] - first[1]) / max(1, last[0] - first[0])


class Others:
    """What others use of the processors while something is measured: beside this process and the server."""

    def __init__(self, server):
        self.server = server
        self.first = self._now()

    def _now(self):
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        idle = fields[3] + fields[4]
        own = (self.server.cpu_seconds() + time.process_time()) * os.sysconf("SC_CLK_TCK")
        return sum(fields), sum(fields) - idle - own

    def share(self):
        last = self._now()
        return max(0, (last[1] - self.first[1]) / max(1, last[0] - self.first[0]))


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def passages(server, count):
    """A namespace with a bucket of texts and a collection over it; answers bucket, collection, objects."""
    server.namespace = None
    server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "load"})["namespace_id"]
    bucket = server.call("POST", "/v1/buckets", {
        "bucket_name": "texts", "bucket_schema": {"properties": {"text": {"type": "text"}}}})["bucket_id"]
    collection = server.call("POST", "/v1/collections", {
        "collection_name": "texts", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "text"}}})["collection_id"]
    objects = []
    for number in range(count):
        text = f"Passage {number}: " + " ".join(f"word{(number * 31 + i) % 997}" for i in range(80))
        body = {"blobs": [{"property": "text", "type": "text", "data": text}]}
        objects.append(server.call("POST", f"/v1/buckets/{bucket}/objects", body)["object_id"])
    return bucket, collection, objects


def submit(server, bucket, objects):
    batch = server.call("POST", f"/v1/buckets/{bucket}/batches", {"object_ids": objects})["batch_id"]
    server.call("POST", f"/v1/buckets/{bucket}/batches/{batch}/submit", {})
    return f"/v1/buckets/{bucket}/batches/{batch}"


def head(server, method, path, length):
    lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{server.port}", f"content-length: {length}"]
    return ("\r\n".join(lines + [f"{name}: {value}" for name, value in server.headers().items()]) + "\r\n\r\n").encode()


def rows(server, sql):
    database = sqlite3.connect(f"file:{server.folder}/data/loupe.db?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchone()[0]
    finally:
        database.close()


def readyz(server):
    try:
        return server.call("GET", "/readyz", raw=True)[0]
    except OSError:
        return None


def whole(connection):
    """Whether a complete 200 comes; the server closes behind it."""
    connection.settimeout(30)
    answer = b""
    try:
        while piece := connection.recv(65536):
            answer += piece
    except OSError:
        return False
    start, _, body = answer.partition(b"\r\n\r\n")
    return start.startswith(b"HTTP/1.1 200") and json.loads(body or b"null") is not None


def stop():
    running = "SELECT COUNT(*) FROM tasks WHERE kind IS NOT NULL AND parent_id IS NOT NULL AND status = 'PROCESSING'"
    with Server(LOUPE_JOBS__WORKERS="4", LOUPE_JOBS__CHUNK_OBJECTS="32", LOUPE_LOG="info") as server:
        server.start()
        bucket, _, objects = passages(server, 256)
        submit(server, bucket, objects)
        ends = time.monotonic() + 20
        while (chunks := rows(server, running)) < 4 and time.monotonic() < ends:
            time.sleep(0.005)
        # The head and half of the body have arrived: the request is under way until the rest comes.
        body = b'{"limit_":0}'.replace(b'"limit_":0', b" " * 10)
        under_way = []
        for _ in range(200):
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.sendall(head(server, "POST", "/v1/buckets/list", len(body)) + body[:5])
            under_way.append(connection)
        while "loupe_requests_running 200" not in server.call("GET", "/metrics", raw=True)[1].decode():
            time.sleep(0.01)
        told = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        while (status := readyz(server)) == 200 and time.monotonic() - told < 5:
            time.sleep(0.002)
        unready = time.monotonic() - told
        for number, connection in enumerate(under_way):
            connection.sendall(body[5:])
            if number % 20 == 0:
                time.sleep(0.05)
        answered = sum(whole(connection) for connection in under_way)
        code = server.process.wait(40)
        took = time.monotonic() - told
        held = rows(server, running)
        check("R-30", "chunks that ran at SIGTERM", chunks, "", chunks == 4, "4")
        check("R-30", "/readyz answers 503 after", unready * 1e3, "ms", status == 503 and unready < 0.2, "at once")
        check("R-30", "requests under way that were not answered", len(under_way) - answered, "", answered == len(under_way), "0 of 200")
        check("R-30", "the process ends after", took, "s", took <= 30, "<= 30")
        check("R-30", "its status", code, "", code == 0, "0")
        check("R-30", "leases it left", held, "", held == 0, "0")
        began = time.monotonic()
        server.start()
        while rows(server, running) == 0 and time.monotonic() - began < 20:
            time.sleep(0.01)
        again = time.monotonic() - began
        check("R-30", "the next process works on the chunks after", again, "s", again <= 2, "<= 2")


async def ask(connection, request):
    """Status and seconds of one request on a connection that stays open."""
    reader, writer = connection
    began = time.perf_counter()
    writer.write(request)
    start = await reader.readuntil(b"\r\n\r\n")
    lines = start.decode().lower().split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
    await reader.readexactly(length)
    status = int(lines[0].split()[1])
    if status in (429, 503) and not any(line.startswith("retry-after:") for line in lines):
        faults.append("a refusal without Retry-After")
    return status, time.perf_counter() - began


class Searches:
    numbers = itertools.count(1)

    def __init__(self, server, retriever):
        self.server, self.path = server, f"/v1/retrievers/{retriever}/execute"

    def next(self):
        """Never the same words twice, not in a second look either: a cached answer costs nothing."""
        number = next(self.numbers)
        body = json.dumps({"inputs": {"query": f"word{number * 7 % 997} and number {number} of the passages"}}).encode()
        return head(self.server, "POST", self.path, len(body)) + body

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.server.port)

    async def alone(self, count):
        connection = await self.connect()
        times = []
        for _ in range(count):
            status, took = await ask(connection, self.next())
            assert status == 200, status
            times.append(took)
        connection[1].close()
        return times

    async def saturating(self, connections, seconds):
        """Answers a second of so many callers that wait for their answers."""
        ends, done = time.perf_counter() + seconds, 0

        async def caller():
            nonlocal done
            connection = await self.connect()
            while time.perf_counter() < ends:
                status, _ = await ask(connection, self.next())
                done += status == 200
            connection[1].close()
        await asyncio.gather(*(caller() for _ in range(connections)))
        return done / seconds

    async def flood(self, rate, seconds):
        """So many requests a second, whether answers come or not; answers statuses with seconds, and those of /healthz."""
        idle, answers, health, began = [], [], [], time.perf_counter()
        healthz = f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{self.server.port}\r\n\r\n".encode()

        async def one():
            connection = idle.pop() if idle else await self.connect()
            answers.append(await ask(connection, self.next()))
            idle.append(connection)

        async def watch():
            connection = await self.connect()
            while time.perf_counter() - began < seconds:
                health.append(await ask(connection, healthz))
                await asyncio.sleep(0.05)
        watching, sent = asyncio.ensure_future(watch()), []
        while (passed := time.perf_counter() - began) < seconds:
            sent += [asyncio.ensure_future(one()) for _ in range(int(passed * rate) - len(sent))]
            await asyncio.sleep(0.002)
        await asyncio.gather(watching, *sent)
        return answers, health


async def flooded(server, retriever, seconds, times, judged, long):
    searches, others = Searches(server, retriever), Others(server)
    await searches.alone(20)
    alone = await searches.alone(1000 if long else 150)
    rate = await searches.saturating(2 * (os.cpu_count() or 2), 10 if long else 2)
    server.forget_peak()
    began = time.perf_counter()
    answers, health = await searches.flood(times * rate, seconds)
    took = time.perf_counter() - began
    memory = server.memory_as_released_mib() + server.peak_mib() - server.memory_mib()
    await asyncio.sleep(5)
    after = await searches.alone(500 if long else 100)
    accepted = [took for status, took in answers if status == 200]
    refused = [took for status, took in answers if status in (429, 503)]
    # A machine that became busy meanwhile cannot judge, either.
    share = others.share()
    if judged and share >= BUSY:
        judged = False
        print(f"      {share * 100:.0f} % of the processors were used by others meanwhile: times are shown and not judged")
    print(f"      alone: median {statistics.median(alone) * 1e3:.1f} ms, p99 {percentile(alone, 0.99) * 1e3:.1f} ms; saturated {rate:.0f}/s; {len(answers)} requests in {seconds} s: {len(accepted)} accepted, {len(refused)} refused")
    if long:
        # Whoever sends cannot be slower than it says, nor answers come long after the last request.
        offered = len(answers) / seconds / rate
        check("R-31", "requests sent a second / a second when saturated", offered, "x", offered >= 0.95 * times, f">= {0.95 * times:g}", judged)
        check("R-31", "the last answer comes after the last request by", took - seconds, "s", took - seconds < 5, "< 5", judged)
        calm = percentile(after, 0.99) / percentile(alone, 0.99)
        check("R-31", "p99 5 s later / before", calm, "x", calm <= 2, "<= 2", judged)
    ratio = percentile(accepted, 0.99) / percentile(alone, 0.99)
    check("R-31", "p99 of accepted requests / p99 of one at a time", ratio, "x", ratio <= 3, "<= 3", judged)
    check("R-31", "other answers than 200, 429, 503", len(answers) - len(accepted) - len(refused), "", len(answers) == len(accepted) + len(refused), "0")
    slow = percentile(refused, 0.99) if refused else 0
    check("R-31", "p99 of refusals", slow * 1e3, "ms", bool(refused) and slow < 0.1, "< 100", judged)
    check("R-31", "accepted a second / a second when saturated", len(accepted) / seconds / rate, "", len(accepted) / seconds >= rate / 3, ">= 0.33", judged)
    ill = max(took for _, took in health)
    check("R-31", "/healthz always answers, at most after", ill * 1e3, "ms", all(status == 200 for status, _ in health) and ill < 1, "< 1000")
    check("R-31", "resident memory at most", memory, "MiB", memory < 512, "< 512")
    back = statistics.median(after) / statistics.median(alone)
    check("R-31", "median 5 s later / before", back, "x", back <= 1.5, "<= 1.5", judged)


def shed(seconds, times, long):
    with Server() as server:
        server.start()
        bucket, collection, objects = passages(server, 100)
        batch = submit(server, bucket, objects)
        while server.call("GET", batch)["status"] not in ("COMPLETED", "FAILED", "COMPLETED_WITH_ERRORS"):
            time.sleep(0.1)
        retriever = server.call("POST", "/v1/retrievers", {
            "retriever_name": "load", "collection_identifiers": [collection],
            "input_schema": {"query": {"type": "text", "required": True}},
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": FEATURE, "query": {"input_mode": "text", "value": "{{INPUT.query}}"}, "top_k": 10}],
                "final_top_k": 10}}}]})["retriever_id"]
        # Times are measured beside whatever else the machine does: a second look tells a disturbance from a fault.
        share = busy()
        print(f"      {share * 100:.0f} % of the processors are used by others{'' if share < BUSY else ': times are shown and not judged'}")
        before = len(faults)
        for _ in range(3):
            del faults[before:]
            asyncio.run(flooded(server, retriever, seconds, times, share < BUSY, long))
            if len(faults) == before:
                return


def sent(server, bucket, size):
    """Uploads a file of so many bytes as fast as they are taken; answers the upload."""
    upload = server.call("POST", f"/v1/buckets/{bucket}/uploads", {"filename": "large.txt", "content_type": "text/plain"})
    url = urllib.parse.urlsplit(upload["presigned_url"])
    piece = b"a line of a large text\n" * 50_000
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        lines = [f"PUT {url.path}?{url.query} HTTP/1.1", f"host: {url.netloc}", f"content-length: {size}", "connection: close"]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        for start in range(0, size, len(piece)):
            connection.sendall(piece[:size - start])
        connection.settimeout(60)
        answer = connection.recv(65536).decode()
    if not answer.startswith("HTTP/1.1 200"):
        raise SystemExit(f"the upload was refused: {answer}")
    return upload["upload_id"]


def files(server):
    """A bucket for files."""
    server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "files"})["namespace_id"]
    return server.call("POST", "/v1/buckets", {
        "bucket_name": "files", "bucket_schema": {"properties": {"text": {"type": "text"}}}})["bucket_id"]


def upload(megabytes):
    with Server() as server:
        server.start()
        bucket = files(server)
        # What is made once is no part of it.
        sent(server, bucket, 1_000_000)
        before = server.memory_mib()
        server.forget_peak()
        began = time.monotonic()
        sent(server, bucket, megabytes * 1_000_000)
        took, more = time.monotonic() - began, server.peak_mib() - before
        print(f"      {megabytes} MB in {took:.1f} s: {megabytes / took:.0f} MB/s")
        check("R-32", f"more memory while {megabytes} MB are uploaded", more, "MiB", more < 32, "< 32")


def slow():
    patience = 3
    with Server(LOUPE_LIMITS__REQUEST_SECONDS=str(patience)) as server:
        server.start()
        bucket = files(server)
        size = 64_000_000
        made = server.call("POST", f"/v1/buckets/{bucket}/uploads/{sent(server, bucket, size)}/confirm", {})["object_id"]
        found = server.call("GET", f"/v1/buckets/{bucket}/objects/{made}?return_presigned_urls=true")
        url = urllib.parse.urlsplit(found["blobs"][0]["presigned_url"])
        time.sleep(0.5)
        idle = server.sockets()
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nhost: {url.netloc}\r\n\r\n".encode())
        began, read = time.monotonic(), 0
        while time.monotonic() - began < 10 * patience and (server.sockets() > idle or read == 0):
            read += len(connection.recv(1))
            time.sleep(1)
        took, cut = time.monotonic() - began, server.sockets() <= idle
        check("R-32", f"a caller that read {read} bytes is cut off after", took, "s", cut and took < 3 * patience, f"about {patience}")
        connection.settimeout(5)
        try:
            while piece := connection.recv(1 << 20):
                read += len(piece)
        except OSError:
            pass
        check("R-32", "what it gets of the file", read / size, "", read < size, "< 1")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["stop", "shed", "upload", "slow"])
    parser.add_argument("--seconds", type=float, help="of the overload: 4, or 60 with --long")
    parser.add_argument("--long", action="store_true", help="R-31 in full")
    parser.add_argument("--times", type=float, default=10, help="of the rate that saturates; a debug build refuses at a hundred times the cost")
    parser.add_argument("--megabytes", type=int, default=100, help="of the file that is uploaded")
    given = parser.parse_args()
    if "stop" in given.what:
        # As below: a second look tells a disturbance from a fault.
        before = len(faults)
        for _ in range(3):
            del faults[before:]
            stop()
            if len(faults) == before:
                break
    if "shed" in given.what:
        shed(given.seconds or (60 if given.long else 4), given.times, given.long)
    if "upload" in given.what:
        upload(given.megabytes)
    if "slow" in given.what:
        slow()
    sys.exit(f"broken: {', '.join(faults)}" if faults else 0)


if __name__ == "__main__":
    main()
