#!/usr/bin/env python3
"""kill -9 at random moments of an ingestion through the real binary: nothing announced is lost, nothing is there twice.

    end2end/crash.py [--kills 10] [--objects 200] [--database sqlite]
    end2end/crash.py --kills 50 --objects 2000 --database postgres      (R-1 in full; the same with sqlite)

LOUPE_SEED repeats a run; the seed is printed. PostgreSQL is the one that LOUPE_TEST_POSTGRES names, or one that is started for
this run.
"""

import argparse
import os
import random
import sys
import time

from loupe import Refused, Server, postgres

ENDED = {"COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED", "CANCELED"}
TOOK = "seconds from the last start to the end"
# What it may take, in seconds.
IN_TIME = 60


def prepare(server, count):
    """A namespace, a bucket of texts, a collection over it, `count` objects; answers the collection and object ids."""
    server.namespace = None
    server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "crash"})["namespace_id"]
    bucket = server.call("POST", "/v1/buckets", {
        "bucket_name": "texts", "bucket_schema": {"properties": {"text": {"type": "text"}, "number": {"type": "integer"}}}})["bucket_id"]
    collection = server.call("POST", "/v1/collections", {
        "collection_name": "texts",
        "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {
            "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "text"},
            "field_passthrough": [{"source_path": "number"}],
        }})["collection_id"]
    objects = []
    for number in range(count):
        text = f"Passage {number}: " + " ".join(f"word{(number * 31 + i) % 997}" for i in range(80))
        body = {"number": number, "blobs": [{"property": "text", "type": "text", "data": text}]}
        objects.append(server.call("POST", f"/v1/buckets/{bucket}/objects", body)["object_id"])
    return bucket, collection, objects


def told(server, kind):
    """What was told by every event of a kind."""
    payloads, cursor = [], None
    while True:
        query = f"?limit=1000&event_type={kind}" + (f"&cursor={cursor}" if cursor else "")
        page = server.call("GET", f"/v1/events{query}")
        payloads += [event["payload"] for event in page["results"]]
        if not page["has_more"]:
            return payloads
        cursor = page["next_cursor"]


def run(kills, count, database_url, rng):
    settings = {"LOUPE_JOBS__LEASE_SECONDS": "2", "LOUPE_JOBS__CHUNK_OBJECTS": "8", "LOUPE_JOBS__WORKERS": "2"}
    if database_url:
        settings["LOUPE_DATABASE_URL"] = database_url
    # Long enough for a few chunks, so that the kills fall all over the ingestion.
    life = max(1.2, 0.06 * count / max(kills, 1))
    with Server(**settings) as server:
        server.start()
        bucket, collection, objects = prepare(server, count)
        batch = server.call("POST", f"/v1/buckets/{bucket}/batches", {"object_ids": objects})["batch_id"]
        server.call("POST", f"/v1/buckets/{bucket}/batches/{batch}/submit", {})
        path = f"/v1/buckets/{bucket}/batches/{batch}"
        during = 0
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, life))
            during += server.call("GET", path)["status"] not in ENDED
            server.kill()
            server.start()
        last = time.monotonic()
        while (status := server.call("GET", path)["status"]) not in ENDED:
            if time.monotonic() - last > 300:
                raise SystemExit(f"the batch is still {status} 300 s after the last start")
            time.sleep(0.2)
        took = time.monotonic() - last
        documents = server.page(f"/v1/collections/{collection}/documents/list", {})
        events = told(server, "collection.documents.written")
        written = {document for event in events for document in event["document_ids"]}
        ends = told(server, "collection.documents.batch_completed")
        ids = [document["document_id"] for document in documents]
        parts = [(document["_internal"]["lineage"]["root_object_id"], document.get("number")) for document in documents]
        stored_objects = {part[0] for part in parts}
        return {
            "status": status,
            "killed while the batch ran": f"{during} of {kills} times",
            TOOK: round(took, 1),
            "documents": len(ids),
            "announced, in how many events": f"{len(written)} in {len(events)}",
            "ends told": len(ends),
            "lost (counted at the end but not there)": sum(end["total_documents"] for end in ends) - len(ids),
            "lost (announced but not there)": len(written - set(ids)),
            "lost (object without a document)": len(set(objects) - stored_objects),
            "lost (never announced)": len(set(ids) - written),
            "duplicate ids": len(ids) - len(set(ids)),
            "duplicate parts": len(parts) - len(set(parts)),
            "extra": len(stored_objects - set(objects)),
        }, during


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    given = parser.parse_args()
    database_url = postgres() if given.database == "postgres" else ""
    seed = int(os.environ.get("LOUPE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"LOUPE_SEED={seed}", flush=True)
    try:
        result, during = run(given.kills, given.objects, database_url, random.Random(seed))
    except Refused as refused:
        raise SystemExit(f"the server refused: {refused}") from refused
    for name, value in result.items():
        print(f"{name:42} {value}")
    wrong = sum(value != 0 for name, value in result.items() if name.startswith(("lost", "duplicate", "extra")))
    wrong += result["ends told"] != 1
    wrong += result[TOOK] > IN_TIME
    if during == 0:
        print("no kill fell into the ingestion: use more --objects")
        wrong += 1
    sys.exit(bool(wrong) or result["status"] != "COMPLETED")


if __name__ == "__main__":
    main()
