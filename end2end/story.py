"""The examples of the API's description, told to a server: what they make is what other checks work on."""

import json
import pathlib
import re
import time
import urllib.parse

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "server/src/openapi/examples.json"


def read():
    return json.loads(EXAMPLES.read_text())


def filled(value, saved):
    """The value with what answers gave; templates of retrievers stay."""
    text = json.dumps(value)
    for name, given in saved.items():
        text = text.replace("{{" + name + "}}", given)
    return json.loads(text)


def path(example, saved):
    route = example["operation"].split(" ", 1)[1]

    def fill(found):
        name = found.group(1)
        said = example.get("path", {}).get(name) or "{{" + name.replace("_identifier", "_id") + "}}"
        return urllib.parse.quote(filled(said, saved), safe="")
    address = re.sub(r"\{(\w+)\}", fill, route)
    return address + ("?" + urllib.parse.urlencode(example["query"]).replace("True", "true") if "query" in example else "")


def tell(server, cleaning=False):
    """Sends the examples that make something, and those that remove it only when `cleaning`; answers what was saved."""
    saved = {}
    for example in read():
        if example.get("cleans") and not cleaning:
            continue
        if "form" in example:  # Nothing that follows needs what they make.
            continue
        method = example["operation"].split()[0]
        server.namespace = saved.get("namespace_id")
        if "url" in example:
            address = filled(example["url"], saved).split(str(server.port), 1)[1]
            answer = server.call(method, address, text=example.get("text", "")) if method == "PUT" else None
        else:
            body = filled(example["body"], saved) if "body" in example else None
            status, received = server.call(method, path(example, saved), body, raw=True)
            while example.get("soon") and status == 404:  # Written behind the answer that told its id.
                time.sleep(0.02)
                status, received = server.call(method, path(example, saved), body, raw=True)
            if status != example.get("status", status if status < 300 else 200):
                raise SystemExit(f"{example}: {status} {received.decode()}")
            answer = json.loads(received) if received[:1] in (b"{", b"[") and b"\n" not in received else None
        for name, place in example.get("save", {}).items():
            found = answer
            for piece in place.strip("/").split("/"):
                found = found[int(piece) if isinstance(found, list) else piece]
            saved[name] = found
        if example.get("settle"):
            settle(server)
    return saved


def settle(server):
    """Waits until no task waits or runs, in any namespace."""
    server.namespace = None
    while any(server.call("GET", f"/v1/tasks?status={status}")["results"] for status in ("QUEUED", "PROCESSING")):
        time.sleep(0.05)
