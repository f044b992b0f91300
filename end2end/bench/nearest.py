"""P-6: searches over HTTP beside those of a Chroma server on the same data, asked by one client."""

import array
import concurrent.futures
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

from loupe import Server, free_port, python_with

HERE = pathlib.Path(__file__).resolve().parent
DIMENSION, QUERIES, TURN = 384, 300, 50
# Questions that each side is asked by itself: the hundredth part of them is ten.
ALONE = 1000


class Connection:
    """An HTTP/1.1 connection whose client's part takes microseconds: what a search takes is told, not what a library of either side
    makes of it. Requests are bytes that are made before the clock runs, answers are read after it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request):
        """Milliseconds from the first byte sent to the last received, and the answer as JSON."""
        began = time.perf_counter()
        self.socket.sendall(request)
        received = b""
        while not (whole := body(received)):
            part = self.socket.recv(1 << 18)
            if not part:
                raise SystemExit(f"the connection ended early: {received[:200]}")
            received += part
        wait = (time.perf_counter() - began) * 1000
        if received.split(b" ", 2)[1] != b"200":
            raise SystemExit(f"a search was refused: {received[:1000]}")
        return wait, json.loads(whole)


def body(received):
    """The answer's body, once all of it is there; its headers tell where it ends."""
    head, ended, rest = received.partition(b"\r\n\r\n")
    if not ended:
        return None
    headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"content-length" in headers:
        return rest if len(rest) >= int(headers[b"content-length"]) else None
    return unchunked(rest) if rest.endswith(b"0\r\n\r\n") else None


def unchunked(rest):
    whole = b""
    while (size := int((line := rest.partition(b"\r\n"))[0], 16)) > 0:
        whole, rest = whole + line[2][:size], line[2][size + 2 :]
    return whole


def request(path, headers, asked):
    told = json.dumps(asked).encode()
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", f"content-length: {len(told)}"]
    lines += [f"{name}: {value}" for name, value in headers.items() if name != "content-type"]
    return "\r\n".join([*lines, "", ""]).encode() + told


def rows(file):
    """The vectors that the peer made, as lists."""
    numbers = array.array("f")
    with open(file, "rb") as source:
        numbers.frombytes(source.read())
    return [[round(x, 6) for x in numbers[at : at + DIMENSION]] for at in range(0, len(numbers), DIMENSION)]


def load(server, collection_of_vectors, data):
    """Writes the vectors as documents; answers the path of a retriever of the nearest ten."""
    server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "bench"})["namespace_id"]
    collection, index = collection_of_vectors(server, "vectors", DIMENSION)

    def write(number):
        server.call("POST", f"/v1/collections/{collection}/documents", {"number": number, "vectors": {index["name"]: data[number]}})

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(len(data)), chunksize=64))
    print(f"P-6   {len(data)} documents written one by one in {time.perf_counter() - began:.0f} s", flush=True)
    made = server.call("POST", "/v1/retrievers", {
        "retriever_name": "nearest", "collection_identifiers": ["vectors"],
        "input_schema": {"vector": {"type": "array", "required": True}},
        "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{"feature_uri": index.get("feature_uri") or index["name"], "top_k": 10,
                          "query": {"input_mode": "vector", "value": "{{INPUT.vector}}"}}], "final_top_k": 10}}}]})
    settle(server)
    return f"/v1/retrievers/{made['retriever_id']}/execute"


def search_figure(show, collection_of_vectors, points):
    with tempfile.TemporaryDirectory(prefix="loupe-chroma-") as folder, Server() as server, chroma(folder) as (peer, port):
        peer("make", points, 2 * QUERIES + ALONE, DIMENSION)
        data, asked = rows(f"{folder}/data"), rows(f"{folder}/asked")
        server.start()
        path = load(server, collection_of_vectors, data)
        theirs = f"/api/v2/tenants/default_tenant/databases/default_database/collections/{peer('load')['id']}/query"

        def ask(connection, vector):
            wait, found = connection.ask(request(path, server.headers(), {"inputs": {"vector": vector}}))
            return wait, {document["number"] for document in found["documents"]}

        def ask_peer(connection, vector):
            told = {"query_embeddings": [vector], "n_results": 10, "include": ["metadatas"]}
            wait, found = connection.ask(request(theirs, {}, told))
            return wait, {int(number) for number in found["ids"][0]}

        sides = [(ask, Connection(server.port), [], [], []), (ask_peer, Connection(port), [], [], [])]
        idle = []
        # The first questions of both are told apart: pages that were never read are the disk's matter. In turns, so that both meet
        # the same machine.
        for first in range(0, 2 * QUERIES, TURN):
            exact = [set(true) for true in peer("exact", first, first + TURN)]
            for one, connection, cold, waits, recalls in sides:
                for vector, true in zip(asked[first : first + TURN], exact):
                    wait, found = one(connection, vector)
                    (cold if first < QUERIES else waits).append(wait)
                    recalls.append(len(found & true) / 10)
        # The slowest of a turn are its first, when what they need went from the processor's caches. Nothing else runs now.
        for one, connection, *_ in sides:
            idle.append(percentile([one(connection, vector)[0] for vector in asked[2 * QUERIES :]], 0.99))
        (_, _, cold, waits, recalls), (_, _, _, their_waits, their_recalls) = sides
        server.stop()
        start = server.start()
        first, _ = ask(Connection(server.port), asked[0])
    show("P-6", f"search, {points} x {DIMENSION}, p50", statistics.median(waits), "ms", ("chroma", statistics.median(their_waits)), "<= 0.5x")
    show("P-6", "  the first queries after the load, p50", statistics.median(cold), "ms")
    show("P-6", f"search, p99 of {ALONE} in a row", idle[0], "ms", ("chroma", idle[1]), "<= 5 ms idle")
    show("P-6", "  p99 in turns with the other", percentile(waits, 0.99), "ms", ("chroma", percentile(their_waits, 0.99)))
    show("P-6", "recall@10", statistics.mean(recalls), "", ("chroma", statistics.mean(their_recalls)), ">= 0.98")
    show("P-9", f"start to first answer and search, {points}", start + first / 1e3, "s", None, "<= 2 s with 100000")


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def settle(server):
    """Waits until the index is built: the store looks at it every five seconds, and the process has been idle for eight."""
    quiet, before = 0, server.cpu_seconds()
    for _ in range(600):
        time.sleep(1)
        now = server.cpu_seconds()
        quiet = quiet + 1 if now - before < 0.05 else 0
        before = now
        if quiet >= 8:
            return


@contextlib.contextmanager
def chroma(folder):
    """A Chroma server with its port, and a Python that loads it and knows the true answers: called with words, it answers what it
    prints."""
    python = python_with("chromadb", "numpy")
    port = free_port()
    server = subprocess.Popen([python.parent / "chroma", "run", "--path", f"{folder}/db", "--host", "127.0.0.1", "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"ANONYMIZED_TELEMETRY": "False"})
    client = subprocess.Popen([python, HERE / "chroma_peer.py", folder, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(*words):
        print(*words, file=client.stdin, flush=True)
        line = client.stdout.readline()
        if not line:
            raise SystemExit("the peer ended early")
        return json.loads(line)

    try:
        yield call, port
    finally:
        for process in (client, server):
            process.terminate()
            process.wait()
