"""What ingestion costs, through `/v1` of a whole server: objects a second without and with the model, beside the bare model, what callers
notice of it, and what many collections and alerts add."""

import concurrent.futures
import contextlib
import http.server
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from loupe import Server  # noqa: E402

ENDED = {"COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED"}
PASSTHROUGH = {"feature_extractor_name": "passthrough_extractor", "version": "v1", "field_passthrough": [{"source_path": "text"}, {"source_path": "number"}]}
TEXT = {"feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "text"}}
SPLIT = TEXT | {"parameters": {"split_by": "words", "chunk_size": 100, "chunk_overlap": 0}}
# The output whose place an endpoint takes, and what its vectors have.
OUTPUT, DIMENSIONS = "all_minilm_l6_v2_v1", 384


def texts(count):
    """Short texts, no two alike, the same in every run: a dozen words of the demo's."""
    items = [json.loads(line) for line in (HERE.parent.parent / "demo/objects.jsonl").read_text().splitlines()]
    words = sorted({word for item in items for word in item["description"].split()})
    draw = random.Random(8)
    return [f"{number} " + " ".join(draw.choices(words, k=12)) for number in range(count)]


def hashed(text):
    """A vector that no model made, as JSON: how many words of the text fall upon each dimension by their hash."""
    counts = [0] * DIMENSIONS
    for word in text.split():
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    return json.dumps(counts)


class Hasher(http.server.BaseHTTPRequestHandler):
    """Answers as the endpoint of a model does (TEI)."""

    protocol_version = "HTTP/1.1"
    # Head and body are written apart: the second would wait for the first to be acknowledged.
    disable_nagle_algorithm = True

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["inputs"]
        answer = f"[{','.join(map(hashed, texts))}]".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def without_model():
    """The settings of a server whose texts become vectors by their hash."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hasher) as hasher:
        threading.Thread(target=hasher.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{hasher.server_port}"
        try:
            yield {"LOUPE_MODELS__ENDPOINTS": f'[{{output="{OUTPUT}",protocol="tei",url="{url}",dims={DIMENSIONS}}}]'}
        finally:
            hasher.shutdown()


@contextlib.contextmanager
def library(contents, collections=1, extractor=None, settings=None):
    """A server with an object for each text and so many collections over them: the server, their batch and one collection."""
    with Server(**(settings or {})) as server:
        server.start(seconds=300)
        server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "bench"})["namespace_id"]
        bucket = server.call("POST", "/v1/buckets", {
            "bucket_name": "b", "bucket_schema": {"properties": {"text": {"type": "string"}, "number": {"type": "integer"}}}})["bucket_id"]
        for number in range(collections):
            collection = server.call("POST", "/v1/collections", {
                "collection_name": f"things_{number}", "source": {"type": "bucket", "bucket_ids": [bucket]},
                "feature_extractor": extractor or PASSTHROUGH})["collection_id"]

        def make(one):
            number, text = one
            return server.call("POST", f"/v1/buckets/{bucket}/objects", {"text": text, "number": number})["object_id"]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            ids = list(pool.map(make, enumerate(contents), chunksize=64))
        batch = server.call("POST", f"/v1/buckets/{bucket}/batches", {"object_ids": ids})["batch_id"]
        yield server, f"/v1/buckets/{bucket}/batches/{batch}", collection


def ingest(server, batch):
    """The seconds that a batch takes."""
    began = time.perf_counter()
    task = server.call("POST", f"{batch}/submit", {})["task_id"]
    # The task tells how far it is; the batch would tell each of its objects, too.
    while (status := server.call("GET", f"/v1/tasks/{task}")["status"]) not in ENDED:
        time.sleep(0.05)
    if status != "COMPLETED":
        raise SystemExit(f"the batch ended as {status}")
    return time.perf_counter() - began


def watched(alerts, objects, batches=10):
    """Objects processed a second by a collection that so many alerts watch: in batches one after another, so that alerts look at one while
    the next is processed. And the seconds from the last of them until no look follows."""
    with library(texts(objects)) as (server, whole, _):
        retriever = server.call("POST", "/v1/retrievers", {
            "retriever_name": "numbered", "collection_identifiers": ["things_0"], "input_schema": {"number": {"type": "integer", "required": True}},
            "stages": [{"stage_name": "those", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "field": "number", "operator": "eq", "value": "{{INPUT.number}}"}}}]})["retriever_id"]
        for number in range(alerts):
            server.call("POST", "/v1/alerts", {
                "name": f"number {number}", "retriever_id": retriever, "execution_mode": "on_ingest", "inputs": {"number": -number - 1},
                "notification_config": {"channels": [{"channel_type": "slack", "config": {"webhook_url": "https://chat.example/hooks/bench"}}]}})
        folder, size = whole.rsplit("/", 1)[0], objects // batches
        parts = [server.call("POST", folder, {"filters": {"AND": [
            {"field": "number", "operator": "gte", "value": first}, {"field": "number", "operator": "lt", "value": first + size}]}})["batch_id"]
            for first in range(0, size * batches, size)]
        began = time.perf_counter()
        for part in parts:
            ingest(server, f"{folder}/{part}")
        processed = time.perf_counter()
        # Looks are gathered while others are under way, so that nobody knows how many there will be: the last one is the one that none follows.
        looks, ended = -1, processed
        while time.perf_counter() - ended < 15:
            made = server.call("GET", "/v1/alerts/executions?limit=1&include_total=true")["total_count"]
            if made != looks:
                looks, ended = made, time.perf_counter()
            time.sleep(0.1)
        if looks < alerts or (alerts and looks % alerts):
            raise SystemExit(f"{alerts} alerts looked {looks} times")
        return size * batches / (processed - began), ended - processed


def alerts_figure(show, rounds, objects=10_000):
    without, among = [], []
    for _ in range(rounds):
        without.append(watched(0, objects)[0])
        among.append(watched(1000, objects))
    speed, late = (statistics.median(one[place] for one in among) for place in (0, 1))
    show("alert", f"objects processed a second of {objects} in ten batches beside 1,000 alerts", speed, "1/s",
         ("no alerts", statistics.median(without)), ">= 0.8x")
    show("alert", "  the last look after the last batch", late, "s")


def bare(model, contents):
    """Seconds of the model alone for the same texts."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(contents))
        file.flush()
        said = subprocess.run([model, file.name, "1"], check=True, capture_output=True, text=True).stdout
    return json.loads(said.splitlines()[-1])["seconds"]


def p99_while(server, path, busy):
    """The slowest hundredth of one caller's requests, milliseconds, for as long as `busy` takes."""
    waits, over, done = [], threading.Event(), []

    def work():
        try:
            done.append(busy())
        finally:
            over.set()
    thread = threading.Thread(target=work)
    thread.start()
    while not over.is_set() or len(waits) < 200:
        began = time.perf_counter()
        server.call("GET", path)
        waits.append(time.perf_counter() - began)
        time.sleep(0.01)
    thread.join()
    if not done:
        raise SystemExit("what was to be waited for failed")
    return sorted(waits)[int(len(waits) * 0.99)] * 1e3


def ingestion_figure(show, rounds, model, objects=10_000):
    """P-8, and the memory that a thousand collections take."""
    contents = texts(objects)
    fields, without, read, alone, idle, during = [], [], [], [], [], []
    for _ in range(rounds):
        with library(contents) as (server, batch, _):
            fields.append(objects / ingest(server, batch))
        with without_model() as settings, library(contents, extractor=SPLIT, settings=settings) as (server, batch, _):
            without.append(objects / ingest(server, batch))
        alone.append(bare(model, contents))
        with library(contents, extractor=TEXT) as (server, batch, _):
            read.append(ingest(server, batch))
        # Another one, for whoever asks all the time takes time of it.
        with library(contents, extractor=TEXT) as (server, batch, collection):
            path = f"/v1/collections/{collection}"
            idle.append(p99_while(server, path, lambda: time.sleep(10)))
            during.append(p99_while(server, path, lambda: ingest(server, batch)))
    show("P-8", f"objects a second of {objects}, without a model", statistics.median(without), "1/s", None, ">= 500/s")
    show("P-8", "  their fields alone, no texts split", statistics.median(fields), "1/s")
    show("P-8", f"{objects} short texts with the model", statistics.median(read), "s", ("bare model", statistics.median(alone)), "<= 1.3x")
    show("P-8", "p99 of a request during ingestion", statistics.median(during), "ms", ("idle", statistics.median(idle)), "<= 3x")
    with library(texts(5), collections=1000, extractor=TEXT) as (server, batch, _):
        took = ingest(server, batch)
        show("P-8", "5 texts into 1,000 collections", took, "s")
        show("P-8", "memory with 1,000 collections, at most", server.peak_mib(), "MiB", None, "< 1024 MiB")
