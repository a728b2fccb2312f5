# SPDX-License-Identifier: Apache-2.0
"""An adapter without a compiler, for the test of the harness. Its code is a text derived from the source and the header; its first
argument selects a fault. The README.md of bench/peers describes adapters. It imports little, because it is started a hundred
times."""

import fcntl
import os
import sys
from zlib import crc32

fault = sys.argv[1]
if sys.argv[2] == "--version":
    if fault == "absent":
        print("the module of this peer is not there", file=sys.stderr)
        sys.exit(77)
    print("1.0")
    sys.exit()
cache, source, include = sys.argv[2:5]
options = dict(zip(sys.argv[6::2], map(int, sys.argv[7::2])))
if fault == "crashes":
    sys.exit(139)


def digest(text):
    return b"%064x" % crc32(text)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def compile_once():
    global compiles
    compiles += 1
    return (digest(read(source)) + digest(read(f"{include}/tuning.h"))) * 20


def entry_path():
    covered = b"" if fault == "stale" else read(f"{include}/tuning.h")
    return f"{cache}/{digest(read(source) + covered).decode()}"


def load(path):
    """Loads an entry, which is the checksum followed by the code."""
    try:
        kept = read(path)
    except OSError:
        return None
    if fault in ("trusting", "never_heals") or kept[:64] == digest(kept[64:]):
        if fault == "never_heals" and kept[:64] != digest(kept[64:]):
            return None
        return kept[64:]
    return None


def store(path, code):
    if fault == "never_heals" and os.path.exists(path):
        return
    try:
        os.makedirs(cache, exist_ok=True)
        with open(f"{path}.{os.getpid()}", "wb") as file:
            file.write(digest(code) + code)
        os.rename(f"{path}.{os.getpid()}", path)
    except OSError:
        if fault == "strict":
            raise
        return
    evict(path)


def evict(newest):
    limit = options.get("--limit")
    if limit is None or fault == "grows":
        return
    paths = sorted((f"{cache}/{name}" for name in os.listdir(cache)), key=lambda path: os.stat(path).st_mtime_ns)
    if fault == "forgets_the_last":
        paths = [newest, *paths]
    while sum(os.stat(path).st_size for path in paths) > limit:
        os.unlink(paths[0])
        paths = [path for path in paths if os.path.exists(path)]


def take_turn():
    """Takes the compile lock: one process compiles and the others wait. The lock is released when the process ends."""
    try:
        fcntl.flock(os.open(f"{cache}.turn", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
    except OSError:
        pass


def get():
    path = entry_path()
    if fault == "storms":
        return compile_once()
    code = load(path)
    if code is not None:
        return code
    take_turn()
    code = load(path)
    if code is not None:
        return code
    code = compile_once()
    store(path, code)
    return code


compiles = 0
error = None
code = b""
times = []
try:
    for _ in range(options.get("--times", 1)):
        code = get()
        times.append(5_000_000 if fault == "slow" else 1_000_000)  # no clock: the result must not depend on this machine
except OSError as raised:
    error = f"{type(raised).__name__}: {raised}"
error = "null" if error is None else '"' + error.replace('"', "'") + '"'
print(
    f'{{"ns": {times}, "since_main_ns": {sum(times)}, "sha256": "{digest(code).decode()}", "bytes": {len(code)}, '
    f'"compiles": {compiles}, "error": {error}}}'
)
