"""A server of its own and a small client for the checks that are written in Python; only the standard library."""

import http.client
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time


def binary():
    if path := os.environ.get("LOUPE_BINARY"):
        return os.path.abspath(path)
    target = os.environ.get("CARGO_TARGET_DIR") or CACHE / "target"
    return str(pathlib.Path(target) / "release/loupe")


ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "loupe"
# What the binary may weigh, without models (P-9).
BINARY_MIB = 90


def python_with(*packages):
    """A Python with these packages, in the user's cache, outside the repository."""
    folder = CACHE / "bench-venv" / re.split("[=<>]", packages[0])[0]
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        shell("need_venv")
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        (folder / "ready").touch()
    return python


def shell(*commands):
    """Runs lines of the shell that know the functions of scripts/common.sh, which install what a machine lacks."""
    script = "\n".join(["set -e", '. "$0"', *commands])
    subprocess.run(["bash", "-c", script, ROOT / "scripts/common.sh"], check=True)


def free_port():
    """A port that nobody listens on, below those that connections of this machine take for themselves."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def postgres():
    """The address of a new database on the PostgreSQL for tests. Where there is none, the same command starts anew beside
    one that is thrown away."""
    url = os.environ.get("LOUPE_TEST_POSTGRES")
    if not url:
        script = pathlib.Path(__file__).resolve().parent.parent / "scripts/postgres-for-tests"
        os.execv(script, [script, sys.executable, *sys.argv])
    name = f"loupe_end2end_{os.getpid()}"
    subprocess.run(["psql", "-q", url, "-c", f"CREATE DATABASE {name}"], check=True)
    return f"{url.rpartition('/')[0]}/{name}"


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {json.dumps(body)[:600]}")
        self.status, self.body = status, body


class Server:
    """The built binary on a free port with a data folder that is thrown away."""

    def __init__(self, **settings):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="loupe-end2end-"))
        self.port = free_port()
        self.key = None
        self.namespace = None
        self.process = None
        # The server refuses settings that it does not know, so those of the tests stay here.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LOUPE_")} | {
            "LOUPE_DATA": str(self.folder / "data"),
            "LOUPE_LISTEN": f"127.0.0.1:{self.port}",
            "LOUPE_MODELS__CACHE": os.environ.get("LOUPE_MODEL_CACHE", str(pathlib.Path.home() / ".cache/loupe/models")),
            "LOUPE_JOBS__RESUBMIT_SECONDS": "0",
            "LOUPE_LOG": "warn",
        } | settings
        self.local = threading.local()

    def start(self, seconds=60, under=()):
        """Starts, maybe under another program, and answers the seconds until the first answer."""
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*under, binary(), "serve"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("ab"))
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()
        while time.perf_counter() - began < seconds:
            if self.process.poll() is not None:
                break
            try:
                if self.call("GET", "/readyz", raw=True)[0] == 200:
                    took = time.perf_counter() - began
                    while not self.key and time.perf_counter() - began < seconds:
                        time.sleep(0.01)
                    return took
            except OSError:
                time.sleep(0.005)
        raise RuntimeError("the server did not start:\n" + (self.folder / "log").read_text()[-3000:])

    def _read(self, process):
        for line in process.stdout:
            if found := re.search(rb"loupe_sk_[A-Za-z0-9]+", line):
                self.key = self.key or found.group().decode()

    def kill(self):
        """What a power switch would do to the process."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def headers(self):
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        if self.namespace:
            headers["x-namespace"] = self.namespace
        return headers

    def call(self, method, path, body=None, raw=False, text=None, headers=None):
        """The answer's body; anything but 2xx is raised. With `raw`, status and bytes. `text` is sent as it is.
        `headers` are sent instead of the usual ones."""
        connection = getattr(self.local, "connection", None)
        # What the server closed meanwhile, for nothing came for a minute, says so to who looks.
        if connection is None or connection.sock is None or select.select([connection.sock], [], [], 0)[0]:
            connection = self.local.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sent = text if body is None else json.dumps(body)
            usual = self.headers() if text is None else {"content-type": "text/plain"}
            connection.request(method, path, sent, headers or usual)
            answer = connection.getresponse()
            status, received = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self.local.connection = None
            raise error if isinstance(error, OSError) else ConnectionResetError(str(error)) from error
        if raw:
            return status, received
        value = json.loads(received) if received else None
        if not 200 <= status < 300:
            raise Refused(status, value)
        return value

    def page(self, path, body, size=500):
        """All results of a list operation, page by page."""
        results, offset = [], 0
        while True:
            found = self.call("POST", f"{path}?limit={size}&offset={offset}", body)["results"]
            results += found
            offset += size
            if len(found) < size:
                return results

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def memory_mib(self, which="VmRSS"):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{which}:\s+(\d+)", text).group(1)) / 1024

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_mib(self):
        """The most memory since the last was forgotten."""
        return self.memory_mib("VmHWM")

    def sockets(self):
        """How many connections and listeners it has open."""
        links = pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()
        return sum(os.path.islink(link) and os.readlink(link).startswith("socket:") for link in links)

    def memory_as_released_mib(self):
        """Resident memory, of which the program's own pages are no more than a release may weigh (P-9): a debug build
        maps hundreds of megabytes of code."""
        process = pathlib.Path(f"/proc/{self.process.pid}")
        program, own, is_own = str((process / "exe").readlink()), 0, False
        for line in (process / "smaps").read_text().splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                is_own = line.split(maxsplit=5)[5:] == [program]
            elif line.startswith("Rss:") and is_own:
                own += int(line.split()[1]) / 1024
        return self.memory_mib() - own + min(own, BINARY_MIB)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
