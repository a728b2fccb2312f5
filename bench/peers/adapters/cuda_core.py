# SPDX-License-Identifier: Apache-2.0
"""`cuda.core` with one of its caches or with kiln's: cuda_core.py file|memory|kiln [one_argument] …

A cache of cuda.core does not cover headers: `Program.compile(cache=…)` rejects an include path, and its documentation requires
the caller to build the key with a digest of the headers. This program does that; it digests all files in INCLUDE once per
process. With `one_argument` it only passes the cache to `Program.compile`, which works if the header is in the working
directory.
"""

import time

STARTED = time.monotonic_ns()

import hashlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, Optional  # noqa: E402

from adapter import Question, ask, not_here  # noqa: E402

try:
    import cuda.core
    from cuda.core import ObjectCode, Program, ProgramOptions
    from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache, make_program_cache_key

    which = sys.argv.pop(1)
    if which == "kiln":
        import kiln
        from kiln.cuda_core import ProgramCache
except ImportError as missing:
    not_here(f"cuda.core is not installed: {missing}")


def cache_class(asked: Question) -> tuple[Any, list[Any], dict[str, Any]]:
    """Returns the type of the cache and its arguments."""
    if which == "memory":
        return InMemoryProgramCache, [], {"max_size_bytes": asked.limit}
    if which == "file":
        return FileStreamProgramCache, [asked.cache], {"max_size_bytes": asked.limit}
    settings: dict[str, str | int] = {"cache.dir": asked.cache}
    if asked.limit is not None:
        settings["cache.max_size"] = asked.limit
    return ProgramCache, [kiln.Session(settings)], {}


def make_cache(asked: Question) -> Any:
    kind, arguments, options = cache_class(asked)
    return kind(*arguments, **options)


def digest_of(folder: str) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.digest()


class WithDigest:
    def __init__(self) -> None:
        self.compiles: Optional[int] = 0
        self._cache: Any = None
        self._headers = b""

    def get(self, asked: Question) -> bytes:
        if self._cache is None:
            self._cache = make_cache(asked)
            self._headers = digest_of(asked.include)
        options = ProgramOptions(arch=asked.arch, name=asked.name, include_path=asked.include)
        key = make_program_cache_key(
            code=asked.source, code_type="c++", options=options, target_type="cubin", extra_digest=self._headers
        )
        data = self._cache.get(key)
        if data is not None:
            return bytes(ObjectCode.from_cubin(data, name=asked.name).code)
        code = Program(asked.source, "c++", options).compile("cubin")
        self.compiles = (self.compiles or 0) + 1
        self._cache[key] = code
        return bytes(code.code)


class OneArgument:
    """Counts stores as compiles."""

    def __init__(self) -> None:
        self.compiles: Optional[int] = 0
        self._cache: Any = None

    def get(self, asked: Question) -> bytes:
        if self._cache is None:
            os.chdir(asked.include)
            self._cache = self._counting(asked)
        program = Program(asked.source, "c++", ProgramOptions(arch=asked.arch, name=asked.name))
        return bytes(program.compile("cubin", cache=self._cache).code)

    def _counting(self, asked: Question) -> Any:
        base, arguments, options = cache_class(asked)
        peer = self

        class Counting(base):  # type: ignore[valid-type,misc]
            def __setitem__(self, key: Any, value: Any) -> None:
                peer.compiles = (peer.compiles or 0) + 1
                super().__setitem__(key, value)

        return Counting(*arguments, **options)


if sys.argv[1:2] == ["one_argument"]:
    del sys.argv[1]
    ask(OneArgument(), cuda.core.__version__, STARTED)
else:
    ask(WithDigest(), cuda.core.__version__, STARTED)
