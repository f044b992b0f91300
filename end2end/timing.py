#!/usr/bin/env python3
"""How long the sign-in of an app takes for those whom it does not let in: a wrong password and an unknown address take the same
time, and so do both once there were too many tries (S-7).

    end2end/timing.py [--tries 2000] [--short]

Every try comes from another address, as the proxy before the server would say. `--short` takes seconds, and allows for what else
a machine does: a few tries, up to three times. What is left out for nobody is missing each time.
"""

import argparse
import http.client
import pathlib
import re
import statistics
import sys
import time
import urllib.parse

from loupe import Server

# Wrong tries at one account before it is closed.
TRIES_OF_ACCOUNT = 20
TOLERANCE = 0.05
# The same of the short form, its tries, and how often it begins anew.
SHORT_TOLERANCE, SHORT_TRIES, ROUNDS = 0.25, 60, 3
PASSWORD = "a lamp in the cave"


class App:
    """An app with sign-in, and visitors of it from everywhere."""

    def __init__(self, server):
        self.server, self.visitors = server, 0
        app = server.call("POST", "/v1/apps", {
            "slug": "club", "meta": {"title": "Club"}, "auth_config": {"mode": "clerk", "clerk_allowed_providers": ["email"]}})["app_id"]
        deploy = server.call("POST", f"/v1/apps/{app}/deploy", {
            "environment": "production", "source_files": {"index.html": "<h1>Club</h1>"}})["deploy_id"]
        while (status := server.call("GET", f"/v1/apps/{app}/deploys/{deploy}")["status"]) in ("queued", "building"):
            time.sleep(0.05)
        assert status == "complete", status
        self.host = f"club.localhost:{server.port}"
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def post(self, path, form):
        """The status and the seconds until it was there."""
        self.visitors += 1
        number = self.visitors
        headers = {
            "host": self.host, "origin": f"http://{self.host}", "content-type": "application/x-www-form-urlencoded",
            "x-forwarded-for": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}
        began = time.perf_counter()
        self.connection.request("POST", path, urllib.parse.urlencode(form), headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, time.perf_counter() - began

    def sign_up(self, email):
        """An account; the mail with its link is in the log of a server without a mail server."""
        log = pathlib.Path(self.server.folder / "log")
        read = log.stat().st_size
        status, _ = self.post("/_auth/sign-up", {"email": email, "password": PASSWORD})
        assert status == 200, status
        for _ in range(100):
            if found := re.search(r"token=([0-9A-Za-z]+)", log.read_bytes()[read:].decode()):
                break
            time.sleep(0.02)
        status, _ = self.post("/_auth/verify", {"token": found.group(1), "password": PASSWORD})
        assert status == 303, status

    def tries(self, accounts, expected):
        """Seconds of a wrong try at each account in turn, known ones and unknown ones by turns."""
        times = {"known": [], "unknown": []}
        for number in accounts:
            for kind, taken in times.items():
                status, seconds = self.post("/_auth/sign-in", {
                    "email": f"{kind}{number}@example.com", "password": "a lamp in the cove"})
                assert status == expected, f"{kind}: {status}"
                taken.append(seconds)
        return times


def compare(what, times, tolerance):
    known, unknown = (statistics.median(times[kind]) * 1e3 for kind in ("known", "unknown"))
    apart = abs(known - unknown) / max(known, unknown)
    holds = apart <= tolerance
    print(f"S-7  {what:28} {known:8.3f} ms  nobody {unknown:8.3f} ms  apart {apart:6.1%}, at most {tolerance:.0%}"
          f"{'' if holds else '   BROKEN'}", flush=True)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    tries, tolerance, rounds = (SHORT_TRIES, SHORT_TOLERANCE, ROUNDS) if asked.short else (asked.tries, TOLERANCE, 1)
    size = -(-tries // TRIES_OF_ACCOUNT)
    with Server(LOUPE_TRUST_PROXY="true", LOUPE_LOG="info") as server:
        server.start()
        app = App(server)
        for start in range(0, rounds * size, size):
            accounts = range(start, start + size)
            for number in accounts:
                app.sign_up(f"known{number}@example.com")
            app.tries([start], 401)  # Makes what is made once.
            full = [number for number in accounts for _ in range(TRIES_OF_ACCOUNT - (number == start))]
            wrong = compare("wrong password", app.tries(full, 401), tolerance)
            locked = compare("after too many tries", app.tries(full, 429), tolerance)
            if wrong and locked:
                return
    sys.exit(1)


if __name__ == "__main__":
    main()
