#!/usr/bin/env python3
"""Which functions the hot paths run through, written to server/hot-functions.txt: the linker lays them side by side.

    LOUPE_SYMBOLS=1 cargo build --release -p loupe-server && end2end/bench/order.py

A name holds a digest of the compiler, of the profile and of what a crate depends on, so the list is made anew when Rust or Cargo.lock
changes, for the profile that the binary's folder is called after; what is listed of others stays. The first line says how many of the
old names were still there. The binary is that of LOUPE_BINARY, else the release.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

from instructions import HERE, VALGRIND, WARM, control, paths
from loupe import Server, binary, shell

KEPT = HERE.parent.parent / "server/hot-functions.txt"
REQUESTS = 100


def functions():
    """The names of the binary's functions."""
    listed = subprocess.run(["nm", "--defined-only", binary()], check=True, capture_output=True, text=True).stdout
    return {line.split()[2] for line in listed.splitlines() if line.split()[1] in "tTwW"}


def executed(dump):
    """What ran, what took most first; instructions of a called function are its own."""
    names, own, current, is_call = {}, collections.Counter(), None, False
    for line in dump.splitlines():
        if found := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?", line):
            kind, number, name = found.groups()
            if name:
                names[number] = re.sub(r"'\d+$", "", name)
            if kind == "fn":
                current = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif found := re.match(r"[+*\-\d]\S* (\d+)", line):
            if not is_call:
                own[current] += int(found.group(1))
            is_call = False
    return [name for name, _ in own.most_common()]


def dumps(server, ask):
    """What callgrind saw of a path's requests."""
    for number in range(WARM):
        ask(number)
    before = set(server.folder.glob("callgrind.out*"))
    control(server, "-z")
    control(server, "-i", "on")
    for number in range(WARM, WARM + REQUESTS):
        ask(number)
    control(server, "-i", "off")
    control(server, "-d")
    return [dump.read_text(errors="replace") for dump in sorted(set(server.folder.glob("callgrind.out*")) - before)]


def listed():
    """The names of each profile."""
    profiles = {}
    for line in KEPT.read_text().splitlines() if KEPT.exists() else ():
        if found := re.match(r"# (\w+):$", line):
            names = profiles.setdefault(found.group(1), [])
        elif not line.startswith("#"):
            names.append(line)
    return profiles


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    shell("need_valgrind")
    known = functions()
    if not known:
        raise SystemExit(f"{binary()} has no symbols: build it with LOUPE_SYMBOLS=1")
    profiles, profile = listed(), pathlib.Path(binary()).parent.name
    old = profiles.get(profile, [])
    print(f"{sum(name in known for name in old)} of {len(old)} names are still there")
    hot = {}
    with Server(LOUPE_LOG="error", LOUPE_TRUST_PROXY="true") as server:
        server.start(seconds=300, under=[*VALGRIND, "--demangle=no", f"--callgrind-out-file={server.folder}/callgrind.out"])
        for name, ask in paths(server).items():
            ran = [one for dump in dumps(server, ask) for one in executed(dump)]
            hot |= dict.fromkeys(one for one in ran if one in known)
            print(f"{name}: {len(ran)} functions, {len(hot)} so far", flush=True)
    version = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    head = f"# The functions of the hot paths, by the names of {version}; made by end2end/bench/order.py.\n"
    profiles[profile] = list(hot)
    KEPT.write_text(head + "".join(f"# {name}:\n" + "".join(f"{one}\n" for one in names) for name, names in profiles.items()))


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    sys.exit(main())
