#!/usr/bin/env python3
"""Runs the README's five minutes with curl as they stand there, on a server of its own: the tour must stay true."""

import json
import os
import pathlib
import re
import subprocess
import sys

from loupe import Server

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


def script(server):
    """The README's block, with this server's key and address, waiting where the reader would."""
    section = README.read_text().split("## Five minutes with curl", 1)[1]
    block = re.search(r"```sh\n(.*?)```", section, re.S).group(1)
    block, keys = re.subn(r"(?m)^export KEY=.*$", f"export KEY={server.key}", block)
    block, addresses = re.subn(r"(?m)^export API=.*$", f"export API=http://127.0.0.1:{server.port}/v1", block)
    wait = 'until [[ $(%s) != [PQI]* && $(%s) != DRAFT ]]; do sleep 0.3; done; %s'
    block, waits = re.subn(r"(?m)^(.*) +# until COMPLETED$", lambda m: wait % (m[1], m[1], m[1]), block)
    assert (keys, addresses, waits) == (1, 1, 1), "the README's tour has another shape: change this script with it"
    return "set -eu -o pipefail\n" + block


def main():
    with Server() as server:
        server.start()
        told = subprocess.run(["bash", "-c", script(server)], capture_output=True, text=True, timeout=900, env=os.environ)
        print(told.stdout[-3000:], told.stderr[-3000:])
        answer = told.stdout[told.stdout.rindex("\n{") :] if "\n{" in told.stdout else "{}"
        titles = [document.get("title") for document in json.loads(answer).get("documents", [])]
        print("found:", titles)
        sys.exit(told.returncode != 0 or "COMPLETED" not in told.stdout or titles[:1] != ["Nosferatu"])


if __name__ == "__main__":
    main()
