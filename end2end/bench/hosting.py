"""What hosting costs: files of an app beside the framework's own file service, and an app's `/api` beside the API itself."""

import contextlib
import functools
import http.client
import json
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from loupe import CACHE, ROOT, Server, shell  # noqa: E402

# Visitors are held to 300 calls a minute and apps to 6,000, so that many of both share the load.
APPS = 20
VISITORS = 50
# Those who sign in, of each app: signing up takes its time.
PEOPLE = 9
PASSWORD = "a lamp in the cave"


@functools.cache
def yardstick():
    """The smallest server of the same framework, with the versions and the profile of the real one. It is built by itself, in the
    cache: a minute, whatever binary is measured."""
    folder, law = CACHE / "bench-hello", tomllib.loads((ROOT / "Cargo.toml").read_text())
    lines = ["[package]", 'name = "hello"', 'version = "0.0.0"', 'edition = "2024"', "[workspace]", "[dependencies]"]
    for name in ("axum", "serde_json", "tokio", "tower-http"):
        given = law["workspace"]["dependencies"][name]
        given = {"version": given} if isinstance(given, str) else given
        features = given.get("features", []) + (["fs"] if name == "tower-http" else [])
        lines.append(f"{name} = {{ version = {json.dumps(given['version'])}, features = {json.dumps(features)} }}")
    profile = {name: value for name, value in law["profile"]["release"].items() if not isinstance(value, dict)}
    lines += ["[profile.release]", *(f"{name} = {json.dumps(value)}" for name, value in profile.items())]
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text("\n".join(lines) + "\n")
    shutil.copy(ROOT / "Cargo.lock", folder)
    # With its time: what did not change is not built again.
    shutil.copy2(ROOT / "server/examples/hello.rs", folder / "src/main.rs")
    build = ["cargo", "build", "-q", "--release", "--manifest-path", folder / "Cargo.toml", "--target-dir", folder / "target"]
    shell("need_rust", shlex.join(map(str, build)))
    return folder / "target/release/hello"


def files(size):
    """A page and a script of so many bytes that compression finds nothing in."""
    words = "".join(f"const a{number} = {number * 7919 % 104729};\n" for number in range(size))
    return {"index.html": "<!doctype html><title>Bench</title><h1>Bench</h1>", "assets/main-4f2a9c1b.js": words[:size]}


def deploy(server, slug, source, **settings):
    """An app that serves these files."""
    app = server.call("POST", "/v1/apps", {"slug": slug, "meta": {"title": slug}, **settings})["app_id"]
    path = f"/v1/apps/{app}"
    made = server.call("POST", f"{path}/deploy", {"source_files": source})["deploy_id"]
    while (status := server.call("GET", f"{path}/deploys/{made}")["status"]) not in {"complete", "failed"}:
        time.sleep(0.05)
    if status != "complete":
        raise SystemExit(f"the app was not deployed: {status}")


@contextlib.contextmanager
def bare(source):
    """The framework's own service for the same files: its port and its process."""
    with tempfile.TemporaryDirectory(prefix="loupe-files-") as folder:
        for name, text in source.items():
            place = pathlib.Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        process = subprocess.Popen([yardstick(), "0", folder], stdout=subprocess.PIPE, text=True)
        try:
            yield int(process.stdout.readline().rsplit(":", 1)[1]), process
        finally:
            process.terminate()
            process.wait()


def files_figure(show, wrk, rounds):
    """Requests a second at 32 connections, of a page and of a script of 20 KB."""
    source = files(20_000)
    with Server() as server, bare(source) as (port, process):
        server.start()
        deploy(server, "bench", source)
        host = {"Host": f"bench.localhost:{server.port}"}
        for what, path in (("page of an app", "/"), ("script of 20 KB of an app", "/assets/main-4f2a9c1b.js")):
            wrk(port, process.pid, path, seconds=1)
            wrk(server.port, server.process.pid, path, host, seconds=1)
            ours, theirs = [], []
            for _ in range(rounds):
                theirs.append(wrk(port, process.pid, path, seconds=4))
                ours.append(wrk(server.port, server.process.pid, path, host, seconds=4))
            for number, of, unit, promise in ((0, "requests a second", "1/s", ">= 0.8x"), (1, "CPU", "µs CPU", "")):
                mine, base = (statistics.median(one[number] for one in all) for all in (ours, theirs))
                show("files", f"{what}, {of}", mine, unit, ("ServeDir", base), promise)


def sign_up(server, number):
    """The session of somebody new at an app with sign-in; the mail with the link is in the log of a server without a mail server."""
    log, host = server.folder / "log", f"in{number % APPS}.localhost:{server.port}"
    read = log.stat().st_size
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def post(path, form):
        connection.request("POST", f"/_auth/{path}", urllib.parse.urlencode(form), {
            "host": host, "origin": f"http://{host}", "content-type": "application/x-www-form-urlencoded",
            "x-forwarded-for": f"10.1.{number // 250}.{number % 250 + 1}"})
        answer = connection.getresponse()
        answer.read()
        return answer

    post("sign-up", {"email": f"visitor{number}@example.com", "password": PASSWORD})
    for _ in range(500):
        if found := re.search(r"token=([0-9A-Za-z]+)", log.read_bytes()[read:].decode()):
            break
        time.sleep(0.02)
    else:
        raise SystemExit("the mail of a sign-up is not in the log")
    cookies = post("verify", {"token": found.group(1), "password": PASSWORD}).headers.get_all("set-cookie") or []
    connection.close()
    return next(cookie.split(";")[0] for cookie in cookies if cookie.startswith("loupe_app="))


def turns(method, path, body, headers, hosts, cookies=()):
    """A script of wrk: calls that come from many visitors of many apps in turn, never faster than those may ask."""
    lines = [f"  headers[{name!r}] = {value!r}" for name, value in headers.items()]
    hosts = ", ".join(f"'{host}'" for host in hosts)
    sent = f"'{body}'" if body else "nil"
    if cookies:
        # One of each app after the other, as the hosts are. Pages say where they are from.
        lines += ["  headers['Cookie'] = cookies[n % #cookies + 1]", "  headers['Origin'] = 'http://' .. hosts[n % #hosts + 1]"]
    cookies = ", ".join(f"'{cookie}'" for cookie in cookies)
    return "\n".join([
        "local n = 0", f"local hosts = {{{hosts}}}", f"local cookies = {{{cookies}}}", "local headers = {}",
        "function delay() return 12 end",
        "request = function()", "  n = n + 1", *lines,
        "  if #hosts > 0 then headers['Host'] = hosts[n % #hosts + 1] end",
        f"  headers['X-Forwarded-For'] = '10.0.' .. (n % {APPS}) .. '.' .. (math.floor(n / {APPS}) % {VISITORS} + 1)",
        f"  return wrk.format('{method}', '{path}', headers, {sent})", "end", ""])


def proxy_figure(show, wrk, rounds, films):
    """CPU of a call, through apps and with a key. Both come as slowly, from as many addresses, of which a proxy tells. Through apps
    with sign-in the session is looked up as well, which nothing is promised of."""
    with Server(LOUPE_TRUST_PROXY="true", LOUPE_LOG="warn,loupe_server::mail=info") as server:
        server.start()
        collection, document = films(server)
        retriever = server.call("POST", "/v1/retrievers", {
            "retriever_name": "some", "collection_identifiers": [collection], "input_schema": {},
            "stages": [{"stage_name": "some", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "field": "year", "operator": "gte", "value": 2000}}}]})["retriever_id"]
        build = {"env_vars": {"LOUPE_NAMESPACE": server.namespace}}
        hosts = [f"bench{number}.localhost:{server.port}" for number in range(APPS)]
        for number in range(APPS):
            deploy(server, f"bench{number}", {"index.html": "<h1>Bench"}, build_config=build)
        auth = {"mode": "clerk", "clerk_allowed_providers": ["email"]}
        inside = [f"in{number}.localhost:{server.port}" for number in range(APPS)]
        for number in range(APPS):
            deploy(server, f"in{number}", {"index.html": "<h1>Bench"}, build_config=build, auth_config=auth)
        cookies = [sign_up(server, number) for number in range(APPS * PEOPLE)]
        key = server.headers()
        for what, method, path, body in (
                ("get one document", "GET", f"/collections/{collection}/documents/{document}", ""),
                ("execute a retriever", "POST", f"/retrievers/{retriever}/execute", '{"inputs": {}}')):
            asked = {"content-type": "application/json"} if body else {}
            direct = turns(method, f"/v1{path}", body, key, [])
            proxied = turns(method, f"/api{path}", body, asked, hosts)
            signed_in = turns(method, f"/api{path}", body, asked, inside, cookies)

            def cost(script, seconds):
                return wrk(server.port, server.process.pid, "/", None, script, seconds=seconds, connections=8)[1]

            for script in (direct, proxied, signed_in):
                cost(script, 1)
            costs, bases, sessions = [], [], []
            for _ in range(rounds):
                bases.append(cost(direct, 5))
                costs.append(cost(proxied, 5))
                sessions.append(cost(signed_in, 5))
            base = "the direct call", statistics.median(bases)
            show("proxy", f"{what} through an app", statistics.median(costs), "µs CPU", base, "<= 1.15x")
            show("proxy", f"{what}, signed in", statistics.median(sessions), "µs CPU", base)
