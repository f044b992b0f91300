#!/usr/bin/env python3
"""kill -9 at random moments of an ingestion through the real binary: nothing announced is lost, nothing is there twice.

    end2end/crash.py [--kills 10] [--objects 200]

LOUPE_SEED repeats a run; the seed is printed.
"""

import argparse
import os
import random
import sys
import time

from loupe import Refused, Server

ENDED = {"COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED", "CANCELED"}


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


def announced(server):
    """Document ids of every `collection.documents.written`, and how many of these events there are."""
    ids, cursor, events = set(), None, 0
    while True:
        query = "?limit=1000&event_type=collection.documents.written" + (f"&cursor={cursor}" if cursor else "")
        page = server.call("GET", f"/v1/events{query}")
        for event in page["results"]:
            ids.update(event["payload"]["document_ids"])
            events += 1
        if not page["has_more"]:
            return ids, events
        cursor = page["next_cursor"]


def run(kills, count, rng):
    with Server(LOUPE_JOBS__LEASE_SECONDS="2", LOUPE_JOBS__CHUNK_OBJECTS="8", LOUPE_JOBS__WORKERS="2") as server:
        server.start()
        bucket, collection, objects = prepare(server, count)
        batch = server.call("POST", f"/v1/buckets/{bucket}/batches", {"object_ids": objects})["batch_id"]
        server.call("POST", f"/v1/buckets/{bucket}/batches/{batch}/submit", {})
        path = f"/v1/buckets/{bucket}/batches/{batch}"
        during = 0
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 1.2))
            during += server.call("GET", path)["status"] not in ENDED
            server.kill()
            server.start()
        last = time.monotonic()
        while (status := server.call("GET", path)["status"]) not in ENDED:
            if time.monotonic() - last > 60:
                raise SystemExit(f"the batch is still {status} 60 s after the last start")
            time.sleep(0.2)
        took = time.monotonic() - last
        documents = server.page(f"/v1/collections/{collection}/documents/list", {})
        written, events = announced(server)
        ids = [document["document_id"] for document in documents]
        parts = [(document["_internal"]["lineage"]["root_object_id"], document.get("number")) for document in documents]
        stored_objects = {part[0] for part in parts}
        return {
            "status": status,
            "killed while the batch ran": during,
            "seconds from the last start to the end": round(took, 1),
            "documents": len(ids),
            "announced, in how many events": f"{len(written)} in {events}",
            "lost (announced but not there)": len(written - set(ids)),
            "lost (object without a document)": len(set(objects) - stored_objects),
            "never announced": len(set(ids) - written),
            "duplicate ids": len(ids) - len(set(ids)),
            "duplicate parts": len(parts) - len(set(parts)),
            "extra": len(stored_objects - set(objects)),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--objects", type=int, default=200)
    given = parser.parse_args()
    seed = int(os.environ.get("LOUPE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"LOUPE_SEED={seed}", flush=True)
    try:
        result = run(given.kills, given.objects, random.Random(seed))
    except Refused as refused:
        raise SystemExit(f"the server refused: {refused}") from refused
    for name, value in result.items():
        print(f"{name:42} {value}")
    wrong = sum(value for name, value in result.items() if name.startswith(("lost", "duplicate", "extra")))
    if result["killed while the batch ran"] == 0:
        print("no kill fell into the ingestion: use more --objects")
        wrong += 1
    sys.exit(bool(wrong) or result["status"] != "COMPLETED")


if __name__ == "__main__":
    main()
