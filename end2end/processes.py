#!/usr/bin/env python3
"""Three processes on one PostgreSQL keep one limit (R-35), what one of them revokes none of them accepts (R-36), and what is due
they do once (R-25).

    end2end/processes.py [rates] [keys] [triggers] [--seconds 12] [--keys 4] [--triggers 20]
    end2end/processes.py --seconds 150 --keys 50      (in full)

R-35: callers of one key ask all three as fast as they can. What passes is counted in every window of 60 seconds, and beside a
reference bucket that was asked at the same moments. The same with one process, exactly. R-36: keys are rotated and revoked at
one process while the others are asked for them without a pause. R-25: many triggers are due at once, three times, which are fired once
each; what was missed for ten days while no process was there is made up for once.

PostgreSQL is the one that LOUPE_TEST_POSTGRES names, or one that is started for this run.
"""

import argparse
import http.client
import math
import secrets
import subprocess
import sys
import threading
import time

from loupe import Server, postgres

KEYS = "/v1/organizations/users/owner@localhost/api-keys"
# Requests a minute; an idle key has banked as many.
LIMIT = 120
faults = []


def check(figure, what, value, unit, holds, promise):
    print(f"{figure}  {what:56} {value:>9.3f} {unit:4} {promise}{'' if holds else '   BROKEN'}", flush=True)
    if not holds:
        faults.append(what)


def together(count):
    """So many processes on a new database."""
    settings = {"LOUPE_DATABASE_URL": postgres(), "LOUPE_MASTER_KEY": secrets.token_hex(32)}
    servers = []
    for _ in range(count):
        server = Server(**settings)
        # The first process makes the first key.
        server.key = servers[0].key if servers else None
        servers.append(server)
        server.start()
    return servers


def asked(connection, key):
    """Status, seconds to wait, and the moments around one request."""
    began = time.monotonic()
    connection.request("GET", "/v1/me", headers={"authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    answer.read()
    return answer.status, float(answer.headers.get("retry-after") or 0), began, time.monotonic()


class Bucket:
    """The reference: full at first, and filled evenly."""

    def __init__(self, per_minute, burst, now):
        self.rate, self.burst, self.level, self.at = per_minute / 60, burst, burst, now

    def take(self, now):
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


def flood(servers, key, seconds, callers=3):
    """All requests of callers that never wait, each with its status and moments."""
    seen, ends = [], time.monotonic() + seconds

    def caller(server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while time.monotonic() < ends:
            found = asked(connection, key)
            seen.append(found)
            if found[0] == 429:
                time.sleep(0.005)
        connection.close()
    threads = [threading.Thread(target=caller, args=(server,)) for server in servers for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def fullest(moments, window=60):
    """The most of them in any window."""
    moments, most, start = sorted(moments), 0, 0
    for end, moment in enumerate(moments):
        while moment - moments[start] >= window:
            start += 1
        most = max(most, end - start + 1)
    return most


def rates(servers, seconds):
    for count, slack in [(1, 1.0), (len(servers), 1.05)]:
        # Names are taken once: those of another look are others.
        name = f"shared by {count} {secrets.token_hex(4)}"
        made = servers[0].call("POST", KEYS, {"name": name, "rate_limit_override": LIMIT})
        seen = flood(servers[:count], made["key"], seconds)
        passed = [found for found in seen if found[0] == 200]
        others = [found[0] for found in seen if found[0] not in (200, 429)]
        reference = Bucket(LIMIT, LIMIT, min(found[2] for found in seen))
        # A request is decided between its moments: the reference is asked at the later one.
        allowed = sum(reference.take(moment) for moment in sorted(found[3] for found in seen))
        what = "process" if count == 1 else "processes"
        print(f"      {count} {what}: {len(seen)} requests in {seconds:g} s, {len(passed)} passed, {allowed} by the reference")
        check("R-35", f"{count} {what}: other answers than 200 and 429", len(others), "", not others, "0")
        # Both count whole tokens, and the last moments differ by less than one flows in.
        most = math.floor(allowed * slack) + 1
        check("R-35", f"{count} {what}: passed, beside the reference", len(passed) / allowed, "x", len(passed) <= most, f"<= {slack}")
        check("R-35", f"{count} {what}: nobody is refused in vain", len(passed) / allowed, "x", len(passed) >= math.floor(allowed * 0.95) - 1, ">= 0.95")
        window = fullest([found[3] for found in passed])
        check("R-35", f"{count} {what}: passed in any 60 s / limit + burst", window / (2 * LIMIT), "x", window <= 2 * LIMIT * slack, f"<= {slack}")
    # Whoever waits as told is served, wherever.
    vain = 0
    for server in servers:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while (found := asked(connection, made["key"]))[0] == 200:
            pass
        time.sleep(found[1])
        vain += asked(connection, made["key"])[0] != 200
        connection.close()
    check("R-35", "refused after the wait that was told", vain, "", vain == 0, "0")


def ended(servers, name, method, path):
    """Ends a secret at the first process; the seconds after which the last of the others still took it."""
    key = servers[0].call("POST", KEYS, {"name": name})["key"]
    accepted, stop = [0.0] * len(servers), threading.Event()

    def caller(number):
        connection = http.client.HTTPConnection("127.0.0.1", servers[number].port, timeout=30)
        while True:
            status, _, began, _ = asked(connection, key)
            if status == 401:
                break
            accepted[number] = began
            if stop.is_set() and time.monotonic() - stopped > 10:
                break
        connection.close()
    threads = [threading.Thread(target=caller, args=(number,)) for number in range(1, len(servers))]
    for thread in threads:
        thread.start()
    while not all(accepted[1:]):
        if not all(thread.is_alive() for thread in threads):
            raise SystemExit(f"{method} {path}: a process refused the key while it was good")
        time.sleep(0.005)
    servers[0].call(method, path)
    stopped = time.monotonic()
    stop.set()
    connection = http.client.HTTPConnection("127.0.0.1", servers[0].port, timeout=30)
    if asked(connection, key)[0] != 401:
        faults.append(f"{method} {path}: the next request of the same process was served")
    connection.close()
    for thread in threads:
        thread.join()
    return max(accepted) - stopped


def keys(servers, count):
    for what, method, path in [("rotated", "POST", KEYS + "/{}/rotate"), ("revoked", "DELETE", KEYS + "/{}?force=true")]:
        late = []
        for number in range(count):
            name = f"{what}-{number}-{secrets.token_hex(4)}"
            late.append(ended(servers, name, method, path.format(name)))
        check("R-36", f"a {what} key is accepted elsewhere for, at most", max(0, *late), "s", max(late) < 1, "< 1")


def fired(server):
    """How often each trigger has been executed."""
    return sorted(one["execution_count"] for one in server.call("GET", "/v1/triggers?limit=100")["results"])


def due(servers, days):
    """Every trigger is to be fired since so many days; answers how often each was, once none is left and nobody looked again."""
    ask = f"UPDATE triggers SET next_at = CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) - {days} * 86400000000::BIGINT"
    subprocess.run(["psql", "-q", servers[0].environment["LOUPE_DATABASE_URL"], "-c", ask], check=True)
    for server in servers:
        if server.process.poll() is not None:
            server.start()
    before, ends = None, time.monotonic() + 60
    while time.monotonic() < ends:
        now = fired(servers[0])
        if now == before and len(set(now)) == 1 and now[0] > 0:
            break
        before = now
        # Each process looks at the clock every second.
        time.sleep(3)
    return now


def triggers(servers, count):
    first = servers[0]
    first.namespace = first.call("POST", "/v1/namespaces", {"namespace_name": f"triggers {secrets.token_hex(4)}"})["namespace_id"]
    first.call("POST", "/v1/collections", {
        "collection_name": "things", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}})
    retriever = first.call("POST", "/v1/retrievers", {
        "retriever_name": "things", "collection_identifiers": ["things"],
        "stages": [{"stage_name": "some", "config": {"stage_id": "limit", "parameters": {"limit": 1}}}]})["retriever_id"]
    for number in range(count):
        first.call("POST", "/v1/triggers", {
            "name": f"look {number}", "trigger_type": "cron", "schedule_config": {"cron_expression": "0 3 * * *"},
            "action_type": "retriever_execution", "action_config": {"retriever_id": retriever}})
    for turn in range(1, 4):
        times = due(servers, turn)
        check("R-25", f"{count} triggers due for the {turn}. time: executions", sum(times), "", times == [turn] * count, f"= {turn * count}")
    for server in servers:
        server.stop()
    times = due(servers, 10)
    check("R-25", "ten days missed: executions", sum(times), "", times == [4] * count, f"= {4 * count}")


def looked(look, *given):
    """Runs it; what it finds broken it has to find three times: a machine that is busy with something else stands still for
    longer than a second has room for."""
    before = len(faults)
    for _ in range(3):
        del faults[before:]
        look(*given)
        if len(faults) == before:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["rates", "keys", "triggers"])
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--triggers", type=int, default=20)
    given = parser.parse_args()
    servers = together(3)
    try:
        if "rates" in given.what:
            looked(rates, servers, given.seconds)
        if "keys" in given.what:
            looked(keys, servers, given.keys)
        if "triggers" in given.what:
            triggers(servers, given.triggers)
    finally:
        for server in servers:
            server.close()
    sys.exit(f"broken: {', '.join(faults)}" if faults else 0)


if __name__ == "__main__":
    main()
