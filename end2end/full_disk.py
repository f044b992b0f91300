#!/usr/bin/env python3
"""A server whose disk of 64 MiB fills up, first by itself and then to the last byte: writes are refused, reads go on, and
writes go on when there is room again (R-5).

    end2end/full_disk.py [--must]

The disk is a file with a file system in it, which only root may mount. Whoever may not is told so and nothing is tried; with
--must that is a failure.
"""

import argparse
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

from loupe import Server

SIZE_MIB = 64
# Left free by the server itself.
KEPT_MIB = 8
# Freed in the end.
BALLAST_MIB = 24
faults = []


def check(what, value, holds, promise):
    print(f"R-5  {what:58} {value!s:>12}  {promise}{'' if holds else '   BROKEN'}", flush=True)
    if not holds:
        faults.append(what)


def mount(folder):
    """Mounts the disk; answers why that cannot be done. One in memory would not do: there a hole in a file takes room as soon
    as it is read."""
    disk = folder.with_name("disk")
    with open(disk, "wb") as file:
        file.truncate(SIZE_MIB << 20)
    folder.mkdir()
    for command in (["mkfs.ext4", "-q", "-m", "0", disk], ["mount", "-o", "loop", disk, folder]):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            return str(error)
        if done.returncode:
            return done.stderr.strip()
    return None


def ballast(path, size=None):
    """Fills so many bytes, or all that are left."""
    written, piece = 0, b"\1" * 65536
    with open(path, "wb", buffering=0) as file:
        while size is None or written < size:
            try:
                written += file.write(piece)
            except OSError:
                if len(piece) == 1:
                    return
                piece = piece[:len(piece) // 2]


class Things:
    """What is written, and what of it was acknowledged."""

    def __init__(self, server):
        self.server = server
        server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "full"})["namespace_id"]
        self.bucket = server.call("POST", "/v1/buckets", {
            "bucket_name": "texts", "bucket_schema": {"properties": {"text": {"type": "text"}}}})["bucket_id"]
        self.collection = server.call("POST", "/v1/collections", {
            "collection_name": "things", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": {
                "vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}}})["collection_id"]
        self.documents, self.objects, self.number = [], [], 0

    def send(self, method, path, body):
        """The status and what is wrong with the answer."""
        status, received = self.server.call(method, path, body, raw=True)
        try:
            answer = json.loads(received)
        except ValueError:
            return status, {}, f"{path}: no JSON"
        if status < 300:
            return status, answer, None
        told = answer.get("success") is False and answer.get("status") == status and answer.get("error", {}).get("type")
        return status, answer, None if told and status in (503, 507) else f"{path}: {status} {received.decode()[:300]}"

    def document(self):
        self.number += 1
        body = {"title": f"thing {self.number}", "text": f"{self.number} " * 8192, "embedding": [1, 0, self.number % 7]}
        status, answer, wrong = self.send("POST", f"/v1/collections/{self.collection}/documents", body)
        if status < 300:
            self.documents.append(answer["document_id"])
        return status, wrong

    def object(self):
        self.number += 1
        body = {"blobs": [{"property": "text", "type": "text", "data": f"{self.number} " * 16384}]}
        status, answer, wrong = self.send("POST", f"/v1/buckets/{self.bucket}/objects", body)
        if status < 300:
            self.objects.append(answer["object_id"])
        return status, wrong

    def definition(self):
        self.number += 1
        status, _, wrong = self.send("POST", "/v1/buckets", {
            "bucket_name": f"bucket_{self.number}", "bucket_schema": {"properties": {"text": {"type": "text"}}}})
        return status, wrong

    def missing(self):
        """What was acknowledged and cannot be read."""
        there = {document["document_id"] for document in self.server.page(f"/v1/collections/{self.collection}/documents/list", {})}
        kept = {found["object_id"] for found in self.server.page(f"/v1/buckets/{self.bucket}/objects/list", {})}
        return len(set(self.documents) - there) + len(set(self.objects) - kept)


def until_refused(things, write, most=2000):
    """Writes until that is refused; answers the status and what was wrong with any answer."""
    wrongs, status = [], 200
    for _ in range(most):
        status, wrong = write()
        if wrong:
            wrongs.append(wrong)
        if status >= 300:
            break
    return status, wrongs


def run(server):
    data = server.folder / "data"
    server.start()
    things = Things(server)
    ballast(data / "ballast", BALLAST_MIB << 20)
    statuses, wrongs = [], []
    for write in (things.document, things.object):
        status, wrong = until_refused(things, write)
        statuses.append(status)
        wrongs += wrong
    free = os.statvfs(data)
    check("documents and objects are written until", f"{free.f_bavail * free.f_frsize >> 20} MiB", len(things.documents) > 10, "are free")
    check("then they are refused with", statuses, all(status in (503, 507) for status in statuses), "503 or 507")
    check("acknowledged and not there", things.missing(), things.missing() == 0, "0")

    ballast(data / "the rest")
    slowest = 0
    for write in (things.document, things.object, things.definition) * 20:
        began = time.monotonic()
        status, wrong = write()
        slowest = max(slowest, time.monotonic() - began)
        wrongs += [wrong] if wrong else []
    check("without a byte left a definition is refused with", status, status in (503, 507), "503 or 507")
    check("the slowest answer", f"{slowest:.2f} s", slowest < 5, "< 5 s")
    # The work of the background meets the full disk, too.
    time.sleep(6)
    check("acknowledged and not there", things.missing(), things.missing() == 0, "0")
    status, _ = server.call("GET", "/healthz", raw=True)
    check("the process lives", status, status == 200 and server.process.poll() is None, "200")

    (data / "the rest").unlink()
    (data / "ballast").unlink()
    began = time.monotonic()
    for write in (things.definition, things.document, things.object):
        while (status := write()[0]) >= 300 and time.monotonic() - began < 30:
            time.sleep(0.1)
    check("with room again everything is written after", f"{time.monotonic() - began:.2f} s", status < 300, "< 5 s, without a restart")
    check("acknowledged and not there", things.missing(), things.missing() == 0, "0")
    for wrong in sorted(set(wrongs))[:5]:
        print("     " + wrong)
    check("answers that were neither 503 nor 507 in the envelope", len(wrongs), not wrongs, "0")
    server.stop()
    database = sqlite3.connect(data / "loupe.db")
    said = database.execute("PRAGMA integrity_check").fetchone()[0]
    database.close()
    check("integrity_check", said, said == "ok", "ok")
    server.start()
    check("acknowledged and not there after a restart", things.missing(), things.missing() == 0, "0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--must", action="store_true", help="fail where no file system can be mounted")
    given = parser.parse_args()
    server = Server(LOUPE_LIMITS__FREE_DISK_BYTES=str(KEPT_MIB << 20), LOUPE_MODELS__OFFLINE="true")
    data = pathlib.Path(server.environment["LOUPE_DATA"])
    refused = mount(data)
    if refused is not None:
        server.close()
        print(f"R-5  nothing was tried, for no file system may be mounted here: {refused}")
        sys.exit(bool(given.must))
    try:
        run(server)
    finally:
        server.stop()
        subprocess.run(["umount", data], check=False)
        server.close()
    sys.exit(f"broken: {', '.join(faults)}" if faults else 0)


if __name__ == "__main__":
    main()
