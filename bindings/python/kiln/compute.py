# SPDX-License-Identifier: Apache-2.0
"""kiln under cuda.compute: what its factories build is cached, verified when read, and built once per host or fleet.

:func:`install` enables it. Every ``cuda.compute.make_*`` and every algorithm then queries kiln before it compiles,
for the current device or for a given ``compute_capability``. :func:`request_warmup` has kiln compile algorithms in the
background, before they are called.

A build on arrays with the library's own operators is a kiln unit (docs/how-to/cccl.md), the same that C++ programs and the
command line use; every other build has a key over its content.
"""

from __future__ import annotations

import contextlib
import enum
import glob
import hashlib
import os
import threading
import time
import warnings
from typing import Any, Callable, Iterable, Iterator, Optional

import kiln
from kiln import _compute_names, _external
from kiln._compute_files import load, save
from kiln._compute_specs import NULL_MATTERS, call, spec_of
from kiln._compute_warmup import request_warmup
from kiln._kiln import _serialized_build

__all__ = ["call", "install", "load", "ready_timeout", "request_warmup", "save", "uninstall", "wait_timeout"]

_SYSTEM = "cuda.compute"
# Releases that this module was tested with. It uses private interfaces, so other releases are not changed.
_KNOWN = ("1.2.",)
_LIBRARIES = ("libnvrtc.so", "libnvJitLink.so", "libcccl.c.parallel.so")

#: Seconds to wait for another process that builds the same thing, before building it as well.
wait_timeout = 60.0

#: Seconds to wait for the compile of a unit to begin, before cuda.compute builds it in this process. A compile that has
#: begun is waited for as long as `wait_timeout`: a second one would take as long and slow down the first.
ready_timeout = 5.0

_originals: list[tuple[Any, str, Callable[..., Any]]] = []  # owner, attribute name and original function
_replacing = threading.Lock()
_identity: list[str] = []
_opened: list[str] = []


def install() -> bool:
    """Enables kiln under cuda.compute in this process. Returns False, with a warning, if there is no driver to open or
    if this release is not supported."""
    import cuda.compute
    from cuda import cccl

    if _originals:
        return True
    # Without a driver, its internal modules cannot be imported, and it builds nothing.
    replacements = _replacements() if cuda.compute._BINDINGS_AVAILABLE else []
    if not replacements or not cccl.__version__.startswith(_KNOWN):
        reason = (
            f"kiln supports cuda-cccl {'*, '.join(_KNOWN)}* and not {cccl.__version__}"
            if cuda.compute._BINDINGS_AVAILABLE
            else "it finds no CUDA driver (libcuda.so.1) and cannot build anything"
        )
        warnings.warn(f"cuda.compute is not changed: {reason}", RuntimeWarning, stacklevel=2)
        return False
    _replace([*replacements, *_compute_names.replacements()])
    return True


def _replace(functions: list[tuple[Any, str, Callable[..., Any]]]) -> None:
    """Replaces functions that are not replaced yet."""
    with _replacing:
        done = {(module, name) for module, name, _ in _originals}
        for module, name, replacement in functions:
            if (module, name) in done:
                continue
            original = getattr(module, name)
            _originals.append((module, name, original))
            setattr(module, name, replacement(original))


def _replacements() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Returns the functions to replace and their replacements. Empty if this release lacks them or cannot serialize."""
    from cuda.compute import _caching, _cccl_interop, _cpp_compile, op

    wanted: list[tuple[Any, str, Callable[..., Any]]] = [
        (_cccl_interop, "call_build", lambda build: _cached_builder(build, load=True)),
        (_cccl_interop, "call_compile", lambda build: _cached_builder(build, load=False)),
        (_cpp_compile, "_compile_cpp_to_ltoir_cached", _cached_compiler),
        (op, "_jit_op_adapter_factory", _stable_names),
    ]
    serializes = getattr(_caching, "_BACKEND_SERIALIZES_BUILD_RESULTS", False)
    return wanted if serializes and all(hasattr(module, name) for module, name, _ in wanted) else []


def uninstall() -> None:
    """Restores the original functions of cuda.compute."""
    with _replacing:
        while _originals:
            module, name, original = _originals.pop()
            setattr(module, name, original)


def _stable_names(import_compiler: Callable[[], Any]) -> Callable[[], Any]:
    """Gives Python operators stable names once cuda.compute imports their compiler, with the first of them."""

    def imported() -> Any:
        adapter = import_compiler()
        if _originals:
            _replace(_compute_names.replacements())
        return adapter

    return imported


@contextlib.contextmanager
def _released_on_exit(pending: _external.PendingCompile) -> Iterator[_external.PendingCompile]:
    """Releases the claim even if the build raises, so that no other process waits for it."""
    try:
        yield pending
    finally:
        pending.release()


def _cached_builder(build: Callable[..., Any], load: bool) -> Callable[..., Any]:
    """Returns a builder that queries the cache first. A failing build raises to the caller, as without kiln."""

    def builder(kind: Any, *args: Any, cc: Any = None, **kwargs: Any) -> Any:
        asked = _Query(kind, cc)
        is_known = cc is not None and not kwargs
        ready = _from_unit(asked, kind, args, load) if is_known else None
        if ready is not None:
            return ready
        key = _key(kind, args, cc) if is_known else None
        if key is None:
            asked.missed("kiln cannot tell what this build depends on")
            return build(kind, *args, cc=cc, **kwargs)
        data, pending, origin = _external.get_or_claim(_SYSTEM, key, wait_timeout)
        if data is not None:
            try:
                result = kind.deserialize(data, load=load, check_cc=load)
                asked.served(origin)
                return result
            except (RuntimeError, ValueError) as error:  # build it as on a miss
                asked.missed(f"the library rejects the entry: {error}")
        else:
            asked.missed("no cache has an entry of its content")
        with _released_on_exit(pending or _external.PendingCompile(key)) as pending:
            result = build(kind, *args, cc=cc, **kwargs)
            pending.store(_SYSTEM, result.serialize(), f"{asked.algorithm} {asked.target}")
        return result

    return builder


class _Query:
    """What kiln was asked for one build of cuda.compute. Emits one event with the answer. Not thread-safe."""

    def __init__(self, kind: Any, cc: Optional[tuple[int, int]]) -> None:
        self._begin = time.monotonic()
        self.algorithm = str(kind.__name__).removeprefix("Device").removesuffix("BuildResult")
        self.label = self.algorithm
        self.target = "" if cc is None else f"sm_{cc[0]}{cc[1]}"
        self.reason = ""  # why the unit of this build, if there is one, does not serve it

    def served(self, origin: str) -> None:
        self._emit(origin, f"{self.algorithm}; not as a unit: {self.reason}" if self.reason else self.algorithm)

    def missed(self, reason: str) -> None:
        self._emit("", f"{self.reason}; {reason}" if self.reason else reason)

    def _emit(self, origin: str, message: str) -> None:
        kiln.shared._emit_build(self.label, self.target, origin, message, (time.monotonic() - self._begin) * 1e3)


def _from_unit(asked: _Query, kind: Any, args: tuple[Any, ...], load: bool) -> Any:
    """Returns a build from the artifact of a kiln unit. None if no spec says what it is, or if kiln does not have it in
    time."""
    spec = spec_of(kind, args)
    libraries = _cccl_libraries() if spec is not None else []
    if spec is None or len(libraries) != 1:
        return None
    try:
        unit = kiln.Unit.cccl(spec)
        asked.label = unit.label
        found = _resolve(unit, asked.target)
        try:
            blob = _serialized_build(found.artifact, unit, libraries[0])
        except kiln.LoadRejected:
            if found.origin != "bundle":
                raise
            # A bundle of another release of the library: the stores or a compile have an artifact of this one.
            found = kiln.shared._resolve_without(found.artifact, unit, asked.target, ready_timeout)
            blob = _serialized_build(found.artifact, unit, libraries[0])
        result = kind.deserialize(blob, load=load, check_cc=load)
    except (kiln.Error, RuntimeError, ValueError) as error:
        asked.reason = str(error)
        return None
    asked.served(found.origin)
    return result


def _resolve(unit: kiln.Unit, target: str) -> kiln.ResolvedArtifact:
    try:
        return kiln.shared.resolve(unit, target, timeout=ready_timeout)
    except kiln.TimedOut:
        units = kiln.shared.status(all=True).units
        if not any(one.unit == unit.label and one.state == "running" for one in units):
            raise
    return kiln.shared.resolve(unit, target, timeout=wait_timeout)


def _cccl_libraries() -> list[str]:
    """Returns the CCCL libraries of cuda.compute that this process has open: one, unless something is odd."""
    if not _opened:
        import cuda.compute

        own = os.path.dirname(os.path.realpath(cuda.compute.__file__)) + os.sep
        found = {path for name, path in _loaded_libraries() if name.startswith("libcccl.") and path.startswith(own)}
        _opened[:] = sorted(found)  # in one step: another thread may do the same
    return _opened


def _cached_compiler(compile_code: Callable[[str, str], bytes]) -> Callable[[str, str], bytes]:
    """Does the same for the device code of iterators, which is compiled before the code that uses it."""

    def compiler(source: str, arch: str) -> bytes:
        identity = _compiler_identity()
        if not identity:
            return compile_code(source, arch)
        key = b"\0".join((b"1 code", identity.encode(), arch.encode(), source.encode()))
        data, pending, _ = _external.get_or_claim(_SYSTEM, key, wait_timeout)
        if data is not None:
            return data
        with _released_on_exit(pending or _external.PendingCompile(key)) as pending:
            code = compile_code(source, arch)
            pending.store(_SYSTEM, code, f"iterator {arch}")
        return code

    return compiler


def _key(kind: Any, args: Iterable[Any], cc: tuple[int, int]) -> Optional[bytes]:
    """Returns a key over everything that a build depends on: the kind, the types and operators including their code,
    the device, the compiler and the headers. None if one of them cannot be determined."""
    from cuda.compute import _bindings as bindings
    from cuda.compute._serialization import codec

    writer = codec.Writer()
    writer.text(kind.__qualname__)
    writer.u32(int(cc[0]) * 10 + int(cc[1]))
    for arg in args:
        if isinstance(arg, bindings.Iterator):
            # Without the address of its values, a sort is built for keys alone.
            writer.u8(8 if kind.__name__ in NULL_MATTERS and arg.is_ptr_kind and not arg.state else 1)
            codec.write_iterator(writer, arg)
        elif isinstance(arg, bindings.Op):
            writer.u8(2)
            codec.write_op(writer, arg)
        elif isinstance(arg, bindings.Value):
            writer.u8(3)
            codec.write_value(writer, arg)
        elif isinstance(arg, bindings.TypeInfo):
            writer.u8(4)
            codec.write_type_info(writer, arg)
        elif isinstance(arg, bytes):
            writer.u8(9)
            writer.blob(arg)
        elif isinstance(arg, (bool, int, enum.IntEnum)):
            writer.u8(5)
            writer.text(str(int(arg)))
        elif isinstance(arg, (str, enum.Enum)):
            writer.u8(6)
            writer.text(str(arg.value if isinstance(arg, enum.Enum) else arg))
        elif arg is None:
            writer.u8(7)
        else:
            return None
    identity = _compiler_identity()
    if not identity:
        return None
    return b"2\0" + identity.encode() + b"\0" + hashlib.sha256(writer.getvalue()).digest()


def _compiler_identity() -> str:
    """Returns a digest of the libraries that this process builds with, and of every header that they could read. Empty
    if that cannot be determined."""
    if not _identity:
        files, directories = _inputs()
        try:
            found = kiln.shared._content_digest(files, directories) if files else ""
        except TypeError:  # a path that is not UTF-8
            found = ""
        if not found:
            return ""
        _identity.append(found)
    return _identity[0]


def _inputs() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns the libraries and the include directories, with the names that stand for their paths."""
    from cuda.cccl import get_include_paths

    files = sorted(_loaded_libraries())
    if len({name.split(".so")[0] for name, _ in files}) < len(_LIBRARIES):
        return [], []
    for name, path in list(files):
        if name.startswith("libnvrtc.so"):
            for builtins in sorted(glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so.*"))):
                files.append((os.path.basename(builtins), builtins))
    # In search order; most are the same directory.
    paths: Any = get_include_paths()
    roots = dict.fromkeys(str(root) for root in paths.as_tuple() if root is not None)
    return files, [(str(place), root) for place, root in enumerate(roots)]


def _loaded_libraries() -> set[tuple[str, str]]:
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            name = os.path.basename(path)
            if name.startswith(_LIBRARIES):
                found.add((name, "/" + path))
    return found
