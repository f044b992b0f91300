#!/usr/bin/env python3
"""Deliveries of webhooks through the real binary on the real clock, checked by the library of Standard Webhooks (R-26).

    end2end/webhooks.py

A receiver answers 500, then is down while the server is killed, then takes what comes; another hangs for 40 seconds; one leads
elsewhere; one is gone for good. The whole schedule, which takes a day, is in server/tests/it/webhooks.rs.
"""

import base64
import http.server
import os
import pathlib
import sys
import threading
import time

from loupe import Server, python_with

PYTHON = python_with("standardwebhooks==1.1.0")
if pathlib.Path(sys.prefix) != PYTHON.parent.parent:
    os.execv(PYTHON, [PYTHON, *sys.argv])

from standardwebhooks.webhooks import Webhook, WebhookVerificationError  # noqa: E402

WEBHOOKS = "/v1/organizations/webhooks"
HANG = 40
faults = []


def check(what, holds, told=""):
    print(f"R-26  {what:72} {'holds' if holds else 'BROKEN'} {told}", flush=True)
    if not holds:
        faults.append(what)


class Receiver(http.server.ThreadingHTTPServer):
    """Answers by the path that is asked, and keeps what came: path, headers, body and moment."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.2", 0), Asked)
        self.answers = {}
        self.came = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.2:{self.server_port}{path}"

    def of(self, path):
        return [one for one in self.came if one[0] == path]

    def wait(self, path, count, seconds=60):
        until = time.monotonic() + seconds
        while len(self.of(path)) < count:
            if time.monotonic() > until:
                raise RuntimeError(f"{path} was asked {len(self.of(path))} times, not {count}")
            time.sleep(0.02)
        return self.of(path)


class Asked(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.came.append((self.path, dict(self.headers), body, time.time()))
        waiting = self.server.answers.get(self.path) or [200]
        status = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if status == HANG:
            time.sleep(HANG)
            status = 200
        try:
            self.send_response(status)
            if status == 302:
                self.send_header("location", self.server.url("/elsewhere"))
            self.send_header("content-length", "0")
            self.end_headers()
        except OSError:
            # Whoever asked has gone.
            pass

    def log_message(self, *_):
        pass


def subscribe(server, receiver, name, **settings):
    """A webhook to the path of its name; answers its body and its secret."""
    body = {
        "webhook_name": name, "event_types": ["collection.created"],
        "channels": [{"channel": "webhook", "configs": {"url": receiver.url(f"/{name}"), **settings}}]}
    made = server.call("POST", WEBHOOKS, body)
    return body, made["channels"][0]["configs"]["signing_secret"]


def happen(server, name):
    server.call("POST", "/v1/collections", {
        "collection_name": name, "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}})


def is_signed(came, secret):
    _, headers, body, _ = came
    try:
        Webhook(secret).verify(body.decode(), {name.lower(): value for name, value in headers.items()})
    except WebhookVerificationError:
        return False
    return True


def delivery(server, name, over, seconds=60):
    """The newest delivery, once `over` says so of it."""
    until = time.monotonic() + seconds
    while True:
        log = server.call("GET", f"{WEBHOOKS}/{name}/deliveries")["results"]
        if log and over(log[0]):
            return log[0]
        if time.monotonic() > until:
            raise RuntimeError(f"{name}: {log}")
        time.sleep(0.05)


def survives(server, receiver):
    """What failed once is tried again after about five seconds, by another process if need be."""
    _, secret = subscribe(server, receiver, "shop")
    receiver.answers["/shop"] = [500, 200]
    happen(server, "one")
    (first,) = receiver.wait("/shop", 1)
    delivery(server, "shop", lambda one: one.get("response_status") == 500)
    server.kill()
    server.start()
    first, second = receiver.wait("/shop", 2)
    pause = second[3] - first[3]
    check("a killed process's delivery is tried again", pause >= 3.9, f"after {pause:.1f} s")
    check("under the same webhook-id", first[1]["webhook-id"] == second[1]["webhook-id"])
    check("with a new timestamp", first[1]["webhook-timestamp"] < second[1]["webhook-timestamp"])
    check("the library verifies both", is_signed(first, secret) and is_signed(second, secret))
    other = "whsec_" + base64.b64encode(bytes(24)).decode()
    check("and nothing signed with another secret", not is_signed(second, other))
    delivery(server, "shop", lambda one: one["status"] == "delivered")


def rotates(server, receiver):
    body, old = subscribe(server, receiver, "rotated")
    new = "whsec_" + base64.b64encode(os.urandom(24)).decode()
    body["channels"][0]["configs"]["signing_secret"] = new
    server.call("PUT", f"{WEBHOOKS}/rotated", body)
    happen(server, "two")
    (came,) = receiver.wait("/rotated", 1)
    check("while a secret is replaced the library verifies with either", is_signed(came, old) and is_signed(came, new))


def hangs(server, receiver):
    receiver.answers["/slow"] = [HANG, 200]
    subscribe(server, receiver, "slow", timeout=2)
    subscribe(server, receiver, "quick")
    began = time.time()
    happen(server, "three")
    waited = receiver.wait("/quick", 1)[0][3] - began
    check("a receiver that hangs holds up nobody else", waited < 2, f"{waited:.2f} s")
    first, second = receiver.wait("/slow", 2)[:2]
    check("it is not waited for longer than it may take", second[3] - first[3] < HANG - 10, f"again after {second[3] - first[3]:.1f} s")


def leads_elsewhere(server, receiver):
    receiver.answers["/led"] = [302]
    subscribe(server, receiver, "led")
    receiver.answers["/gone"] = [410]
    subscribe(server, receiver, "gone")
    happen(server, "four")
    told = delivery(server, "led", lambda one: one.get("response_status") == 302)
    check("a redirect is not followed", told["status"] == "pending" and not receiver.of("/elsewhere"))
    delivery(server, "gone", lambda one: one.get("response_status") == 410)
    until = time.monotonic() + 10
    while server.call("GET", f"{WEBHOOKS}/gone")["is_active"] and time.monotonic() < until:
        time.sleep(0.05)
    check("410 ends a webhook", not server.call("GET", f"{WEBHOOKS}/gone")["is_active"])


def main():
    receiver = Receiver()
    with Server(LOUPE_OUTBOUND__ALLOW='["127.0.0.2"]') as server:
        server.start()
        server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "shop"})["namespace_id"]
        for one in (survives, rotates, hangs, leads_elsewhere):
            one(server, receiver)
    print(f"{len(faults)} broken")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
