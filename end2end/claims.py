#!/usr/bin/env python3
"""Three processes on one PostgreSQL share the queue: every piece of work is done once (R-20), that of the dead in time (R-21),
and batches start in the order of their submission (R-22).

    end2end/claims.py [claims] [deaths] [order] [--pieces 10000] [--batches 200] [--lease 2] [--every 5]
    end2end/claims.py --pieces 1000 --batches 40 --every 1.5      (short: a minute)

The database itself writes down every claim and every end, by triggers of this check. `claims`: nobody dies, so each piece is claimed
and ended once. `deaths`: every so many seconds one of the three is killed (-9) and started again, three times at least; each piece is
ended once all the same, and what the dead held is claimed by another within the lease and five seconds. `order`: places in the queue
have no holes whenever one looks, at any process.

LOUPE_SEED repeats the choice of who dies. PostgreSQL is the one that LOUPE_TEST_POSTGRES names, or one that is started for this run.
"""

import argparse
import os
import random
import secrets
import subprocess
import sys
import time

from loupe import Server, postgres

ENDED = {"COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED", "CANCELED"}
WATCH = """
CREATE TABLE seen (task_id TEXT NOT NULL, what TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION watch() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.attempt > OLD.attempt THEN INSERT INTO seen (task_id, what) VALUES (NEW.task_id, 'claim'); END IF;
    IF NEW.status <> OLD.status AND NEW.ended_at IS NOT NULL THEN INSERT INTO seen (task_id, what) VALUES (NEW.task_id, NEW.status); END IF;
    IF OLD.ended_at IS NOT NULL AND NEW.ended_at IS NULL THEN INSERT INTO seen (task_id, what) VALUES (NEW.task_id, 'again'); END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER watch AFTER UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION watch();
"""
# Pieces of the kind that the removal of an object leaves, with nothing to remove; a millisecond's work.
LEAVE = """
INSERT INTO tasks (task_id, org_id, namespace_id, task_type, status, parent_id, kind, work, created_at, updated_at, data)
SELECT 'piece_{round}_' || number, org_id, namespace_id, task_type, 'QUEUED', parent_id, kind, '{{"object_ids": []}}', updated_at + number, updated_at, data
FROM (SELECT * FROM tasks WHERE kind = 'remove_objects' AND task_id NOT LIKE 'piece%' LIMIT 1) model, generate_series({first}, {last}) number;
"""
# So many die at least: work is added until they have.
KILLS = 3
faults = []


def check(figure, what, value, unit, holds, promise):
    print(f"{figure}  {what:56} {value:>9.3f} {unit:4} {promise}{'' if holds else '   BROKEN'}", flush=True)
    if not holds:
        faults.append(what)


class Queue:
    """Three processes, and the database that they share."""

    def __init__(self, lease):
        self.url, self.lease = postgres(), lease
        settings = {
            "LOUPE_DATABASE_URL": self.url, "LOUPE_MASTER_KEY": secrets.token_hex(32),
            "LOUPE_JOBS__LEASE_SECONDS": str(lease), "LOUPE_JOBS__WORKERS": "2"}
        self.servers = [Server(**settings) for _ in range(3)]

    def start(self):
        for server in self.servers:
            # The first process makes the first key.
            server.key = self.servers[0].key
            server.start()
        first = self.servers[0]
        namespace = first.call("POST", "/v1/namespaces", {"namespace_name": "claims"})["namespace_id"]
        for server in self.servers:
            server.namespace = namespace
        self.bucket = first.call("POST", "/v1/buckets", {
            "bucket_name": "notes", "bucket_schema": {"properties": {"number": {"type": "integer"}}}})["bucket_id"]
        self.collection = first.call("POST", "/v1/collections", {
            "collection_name": "notes", "source": {"type": "bucket", "bucket_ids": [self.bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "input_mappings": {"number": "number"}}})
        gone = self.object(0)
        first.call("DELETE", f"/v1/buckets/{self.bucket}/objects/{gone}")
        self.ask(WATCH)

    def object(self, number):
        return self.servers[0].call("POST", f"/v1/buckets/{self.bucket}/objects", {"number": number})["object_id"]

    def ask(self, sql):
        """Rows of texts."""
        asked = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", self.url, "-c", sql]
        answer = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        return [line.split("|") for line in answer.splitlines()]

    def number(self, sql):
        return float(self.ask(sql)[0][0] or 0)

    def close(self):
        for server in self.servers:
            server.close()


def done(queue, label, count, until=600, meanwhile=lambda: time.sleep(0.2), enough=lambda: True):
    """Leaves so many pieces, and as many again until it is enough, and waits for their end: how many, and their claims."""
    queue.ask(f"DELETE FROM seen; {LEAVE.format(round=label, first=1, last=count)}")
    began, part = time.monotonic(), count
    left = f"SELECT COUNT(*) FROM tasks WHERE task_id LIKE 'piece\\_{label}\\_%' AND ended_at IS NULL"
    while (waiting := queue.number(left)) > 0 or not enough():
        if waiting == 0:
            queue.ask(LEAVE.format(round=label, first=count + 1, last=count + part))
            count += part
        if time.monotonic() - began > until:
            raise SystemExit(f"work is left after {until} s")
        meanwhile()
    print(f"      {count} pieces in {time.monotonic() - began:.1f} s")
    mine = f"FROM seen WHERE task_id LIKE 'piece\\_{label}\\_%'"
    ends = queue.number(f"SELECT COUNT(*) {mine} AND what = 'COMPLETED'")
    others = queue.number(f"SELECT COUNT(*) {mine} AND what NOT IN ('COMPLETED', 'claim')")
    twice = queue.number(f"SELECT COUNT(*) FROM (SELECT 1 {mine} AND what = 'COMPLETED' GROUP BY task_id HAVING COUNT(*) > 1) more")
    check("R-20", f"{label}: ended, of all", ends / count, "x", ends == count, "= 1")
    check("R-20", f"{label}: ended twice, otherwise, or begun again", twice + others, "", twice + others == 0, "0")
    return count, queue.number(f"SELECT COUNT(*) {mine} AND what = 'claim'")


def claims(queue, given, rng):
    count, found = done(queue, "claims", given.pieces)
    check("R-20", "claims of a piece when nobody dies", found / count, "x", found == count, "= 1")


def deaths(queue, given, rng):
    kills, last = 0, time.monotonic()

    def meanwhile():
        nonlocal kills, last
        time.sleep(0.2)
        if time.monotonic() - last >= given.every:
            victim = rng.choice(queue.servers)
            victim.kill()
            kills, last = kills + 1, time.monotonic()
            victim.start()
    # Work for a while: what is done in a moment nobody dies in.
    count, found = done(queue, "deaths", given.pieces * 3, meanwhile=meanwhile, enough=lambda: kills >= KILLS)
    print(f"      {kills} were killed, {found - count:.0f} pieces were claimed again")
    held = """SELECT EXTRACT(EPOCH FROM MAX(next - at)) FROM (
        SELECT at, LEAD(at) OVER (PARTITION BY task_id ORDER BY at) AS next FROM seen WHERE what = 'claim' AND task_id LIKE 'piece\\_deaths\\_%') pairs"""
    longest = queue.number(held)
    check("R-21", "from a claim of the dead to the next one, at most", longest, "s", longest <= queue.lease + 5, f"<= {queue.lease + 5}")


def order(queue, given, rng):
    server, batches = queue.servers[0], f"/v1/buckets/{queue.bucket}/batches"
    submitted, polls = [], 0
    for number in range(given.batches):
        made = queue.servers[number % 3].call("POST", batches, {"object_ids": [queue.object(number)], "auto_submit": True})
        submitted.append(made["batch_id"])
    while True:
        asked = queue.servers[polls % 3].call("GET", "/v1/batches/queue")
        waiting = asked["waiting"]
        polls += 1
        if [one["position"] for one in waiting] != list(range(1, len(waiting) + 1)):
            faults.append(f"places with holes: {waiting}")
        if not waiting:
            break
        time.sleep(0.05)
    print(f"      {polls} looks at the queue")
    started = []
    for batch in submitted:
        while (found := server.call("GET", f"{batches}/{batch}"))["status"] not in ENDED:
            time.sleep(0.05)
        if found["status"] != "COMPLETED":
            faults.append(f"{batch}: {found['status']}")
        started.append(found["tier_tasks"][0]["started_at"])
    late = sum(one > next_one for one, next_one in zip(started, started[1:]))
    check("R-22", f"of {given.batches} batches, begun before an earlier one", late, "", late == 0, "0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["claims", "deaths", "order"])
    parser.add_argument("--pieces", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--lease", type=int, default=2)
    parser.add_argument("--every", type=float, default=5, help="seconds from one death to the next")
    given = parser.parse_args()
    seed = int(os.environ.get("LOUPE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"LOUPE_SEED={seed}", flush=True)
    queue, rng = Queue(given.lease), random.Random(seed)
    try:
        queue.start()
        for look in [claims, deaths, order]:
            if look.__name__ in given.what:
                look(queue, given, rng)
    finally:
        queue.close()
    sys.exit(f"broken: {', '.join(faults)}" if faults else 0)


if __name__ == "__main__":
    main()
