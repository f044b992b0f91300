#!/usr/bin/env python3
"""P-11: how many instructions a request costs on the hot paths, counted by valgrind's callgrind.

    end2end/bench/instructions.py [--write]

Other work on the machine does not change these numbers, so they stand in instructions.json: one that rose by more than a tenth
fails, and one that fell by as much asks to be written down. `--write` writes what was counted. The binary is that of LOUPE_BINARY, else
the release; numbers are kept for each profile apart, by the name of its folder. What an idle server executes in that time is taken off.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from hosting import deploy  # noqa: E402
from loupe import Server, binary, shell  # noqa: E402

KEPT = HERE / "instructions.json"
REQUESTS, WARM = 200, 60
# Seconds in which nothing is asked.
IDLE = 5
MAY_RISE = 1.10
DIMENSION = 384
VALGRIND = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-systime=no"]


def paths(server):
    """What asks the n-th request of each path."""
    server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "bench"})["namespace_id"]
    collection = server.call("POST", "/v1/collections", {
        "collection_name": "films", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": {
            "vector_fields": [{"field": "embedding", "name": "own", "dimensions": DIMENSION}]}}})["collection_id"]
    index = server.call("GET", f"/v1/collections/{collection}")["vector_indexes"][0]
    documents = f"/v1/collections/{collection}/documents"

    def vector(number):
        chance = random.Random(number)
        return [round(chance.uniform(-1, 1), 6) for _ in range(DIMENSION)]

    for number in range(60):
        body = {"title": f"Film {number}", "year": 1960 + number, "vectors": {index["name"]: vector(number)}}
        document = server.call("POST", documents, body)["document_id"]
    bucket = server.call("POST", "/v1/buckets", {
        "bucket_name": "b", "bucket_schema": {"properties": {"title": {"type": "string"}}}})["bucket_id"]
    retriever = server.call("POST", "/v1/retrievers", {
        "retriever_name": "nearest", "collection_identifiers": ["films"],
        "input_schema": {"vector": {"type": "array", "required": True}},
        "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{"feature_uri": index["feature_uri"], "top_k": 10,
                          "query": {"input_mode": "vector", "value": "{{INPUT.vector}}"}}], "final_top_k": 10}}}]})["retriever_id"]
    cursor, more = "", True
    while more:
        page = server.call("GET", f"/v1/events?limit=1000&cursor={cursor}")
        cursor, more = page["next_cursor"], page["has_more"]
    deploy(server, "bench", {"index.html": "<h1>Bench"}, build_config={"env_vars": {"LOUPE_NAMESPACE": server.namespace}})
    through = f"/api{documents.removeprefix('/v1')}/{document}"
    return {
        "empty answer": lambda _: server.call("GET", f"/v1/events?cursor={cursor}"),
        "get a document": lambda _: server.call("GET", f"{documents}/{document}"),
        "list of 50 documents": lambda _: server.call("POST", f"{documents}/list?limit=50", {}),
        # No two alike: kept answers are another path.
        "search by a vector": lambda number: server.call(
            "POST", f"/v1/retrievers/{retriever}/execute", {"inputs": {"vector": vector(number * 7 + 1)}}),
        "create an object": lambda number: server.call("POST", f"/v1/buckets/{bucket}/objects", {"title": f"object {number}"}),
        # Each visitor may ask 30 times a second.
        "a document through an app": lambda number: server.call("GET", through, headers={
            "host": f"bench.localhost:{server.port}", "x-forwarded-for": f"10.0.0.{number % 250}"}),
    }


def control(server, *words):
    subprocess.run(["callgrind_control", *words, str(server.process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def instructions(server, work):
    """Instructions that the process executes while `work` is done, and the seconds that this takes."""
    before = set(server.folder.glob("callgrind.out*"))
    control(server, "-z")
    control(server, "-i", "on")
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    control(server, "-i", "off")
    control(server, "-d")
    dumps = set(server.folder.glob("callgrind.out*")) - before
    totals = [re.search(r"^totals: (\d+)", dump.read_text(errors="replace"), re.M) for dump in dumps]
    return sum(int(total.group(1)) for total in totals if total), took


def count(server, ask, idle):
    """Instructions that a request costs, without the `idle` ones of each second, which a slow machine has more of."""
    for number in range(WARM):
        ask(number)
    done, took = instructions(server, lambda: [ask(number) for number in range(WARM, WARM + REQUESTS)])
    return round((done - idle * took) / REQUESTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write what was counted")
    given = parser.parse_args()
    shell("need_valgrind")
    profile = pathlib.Path(binary()).parent.name
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    known, counted, failed = kept.get(profile, {}), {}, 0
    with Server(LOUPE_LOG="error", LOUPE_TRUST_PROXY="true") as server:
        server.start(seconds=300, under=[*VALGRIND, f"--callgrind-out-file={server.folder}/callgrind.out"])
        asked = paths(server)
        done, took = instructions(server, lambda: time.sleep(IDLE))
        for name, ask in asked.items():
            was = known.get(name)
            counted[name] = count(server, ask, done / took)
            if was and counted[name] > MAY_RISE * was:
                # What runs now and then may have run just then.
                counted[name] = min(counted[name], count(server, ask, done / took))
            ratio = counted[name] / was if was else 1
            rose = ratio > MAY_RISE
            failed += rose
            told = f"  = {ratio:.2f}x of {was:,}" if was else "  (not written down yet)"
            note = "  FAIL: more than a tenth more" if rose else "  (write it down: --write)" if ratio * MAY_RISE < 1 else ""
            print(f"P-11  {name:24} {counted[name]:>12,} instructions{told}{note}", flush=True)
    if given.write:
        KEPT.write_text(json.dumps(kept | {profile: counted}, indent=2) + "\n")
    return 1 if failed and not given.write else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    sys.exit(main())
