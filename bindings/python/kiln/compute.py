"""kiln under cuda.compute: what its factories build is kept, checked when read, and built once per host or fleet.

:func:`install` puts it there. Every ``cuda.compute.make_*`` and every algorithm then asks kiln before it compiles,
whether for the device at hand or for a given ``compute_capability``.
"""

from __future__ import annotations

import contextlib
import enum
import glob
import hashlib
import os
import warnings
from typing import Any, Callable, Iterable, Iterator, Optional

from kiln import _foreign
from kiln._memory import content_digest, files_below, remembered
from kiln._shelf import Shelf

__all__ = ["install", "uninstall", "wait"]

_SYSTEM = "cuda.compute"
# The releases whose inside this was tried with. It is no public interface, so another one is left alone.
_KNOWN = ("1.2.",)
_LIBRARIES = ("libnvrtc.so", "libnvJitLink.so", "libcccl.c.parallel.so")

#: How many seconds to wait for another process that builds the same thing, before building it as well.
wait = 60.0

_shelf = Shelf("compute")
_originals: list[tuple[Any, str, Callable[..., Any]]] = []  # where each was, and what it was called
_identity: list[str] = []


def install() -> bool:
    """Puts kiln under cuda.compute in this process. False, with a warning, where there is no driver to open or this
    release is not known."""
    import cuda.compute
    from cuda import cccl

    if _originals:
        return True
    # Without a driver it is a shell whose inside cannot be imported, and builds nothing.
    replacements = _replacements() if cuda.compute._BINDINGS_AVAILABLE else []
    if not replacements or not cccl.__version__.startswith(_KNOWN):
        reason = (
            f"kiln knows cuda-cccl {'*, '.join(_KNOWN)}* and not {cccl.__version__}"
            if cuda.compute._BINDINGS_AVAILABLE
            else "it finds no CUDA driver (libcuda.so.1) and can build nothing"
        )
        warnings.warn(f"cuda.compute is left as it is: {reason}", RuntimeWarning, stacklevel=2)
        return False
    for module, name, replacement in replacements:
        original = getattr(module, name)
        _originals.append((module, name, original))
        setattr(module, name, replacement(original))
    return True


def _replacements() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Which functions are replaced, and by what. Nothing where this release has them not, or cannot serialise."""
    from cuda.compute import _caching, _cccl_interop, _cpp_compile

    wanted: list[tuple[Any, str, Callable[..., Any]]] = [
        (_cccl_interop, "call_build", lambda build: _kept(build, load=True)),
        (_cccl_interop, "call_compile", lambda build: _kept(build, load=False)),
        (_cpp_compile, "_compile_cpp_to_ltoir_cached", _kept_code),
    ]
    serialises = getattr(_caching, "_BACKEND_SERIALIZES_BUILD_RESULTS", False)
    return wanted if serialises and all(hasattr(module, name) for module, name, _ in wanted) else []


def uninstall() -> None:
    """Puts cuda.compute back as it was."""
    while _originals:
        module, name, original = _originals.pop()
        setattr(module, name, original)


@contextlib.contextmanager
def _letting_go(making: _foreign.Making) -> Iterator[_foreign.Making]:
    """A build that raises makes nobody wait."""
    try:
        yield making
    finally:
        making.let_go()


def _kept(build: Callable[..., Any], load: bool) -> Callable[..., Any]:
    """The same builder, which asks the cache first. A build that fails is the caller's, as it would be without."""

    def builder(kind: Any, *args: Any, cc: Any = None, **kwargs: Any) -> Any:
        key = _key(kind, args, cc) if cc is not None and not kwargs else None
        if key is None:
            return build(kind, *args, cc=cc, **kwargs)
        data, making = _foreign.look(_SYSTEM, key, wait)
        if data is not None:
            try:
                return kind.deserialize(data, load=load, check_cc=load)
            except (RuntimeError, ValueError):
                pass  # the library does not take it: then it is built as if nobody had
        name = f"{kind.__name__.removeprefix('Device').removesuffix('BuildResult')} sm_{cc[0]}{cc[1]}"
        with _letting_go(making or _foreign.Making(key)) as making:
            result = build(kind, *args, cc=cc, **kwargs)
            making.keep(_SYSTEM, result.serialize(), name)
        return result

    return builder


def _kept_code(compile_code: Callable[[str, str], bytes]) -> Callable[[str, str], bytes]:
    """The same for the device code of iterators, which is compiled before what it is built into."""

    def compiler(source: str, arch: str) -> bytes:
        identity = _compiler_identity()
        if not identity:
            return compile_code(source, arch)
        key = b"\0".join((b"1 code", identity.encode(), arch.encode(), source.encode()))
        data, making = _foreign.look(_SYSTEM, key, wait)
        if data is not None:
            return data
        with _letting_go(making or _foreign.Making(key)) as making:
            code = compile_code(source, arch)
            making.keep(_SYSTEM, code, f"iterator {arch}")
        return code

    return compiler


def _key(kind: Any, args: Iterable[Any], cc: tuple[int, int]) -> Optional[bytes]:
    """Of everything that a build depends on: what is built, of which types and operators, their code included, for
    which device, with which compiler and headers. None where one of them cannot be told."""
    from cuda.compute import _bindings as bindings
    from cuda.compute._serialization import codec

    writer = codec.Writer()
    writer.text(kind.__qualname__)
    writer.u32(int(cc[0]) * 10 + int(cc[1]))
    for arg in args:
        if isinstance(arg, bindings.Iterator):
            writer.u8(1)
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
    return b"1\0" + identity.encode() + b"\0" + hashlib.sha256(writer.getvalue()).digest()


def _compiler_identity() -> str:
    """A digest of the libraries that this process builds with, and of every header that they could read. Empty where
    that cannot be told."""
    if not _identity:
        try:
            files = list(_inputs())
            _identity.append(
                remembered(_shelf, "toolchain", (path for _, path in files), lambda: content_digest(files))
                if files
                else ""
            )
        except OSError:
            return ""
    return _identity[0]


def _inputs() -> Iterable[tuple[str, str]]:
    from cuda.cccl import get_include_paths

    libraries = sorted(_loaded_libraries())
    if len({name.split(".so")[0] for name, _ in libraries}) < len(_LIBRARIES):
        return
    yield from libraries
    for name, path in libraries:
        if name.startswith("libnvrtc.so"):
            for builtins in sorted(glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so.*"))):
                yield os.path.basename(builtins), builtins
    # In the order in which they are searched; most are one and the same folder.
    paths: Any = get_include_paths()
    roots = dict.fromkeys(str(root) for root in paths.as_tuple() if root is not None)
    for place, root in enumerate(roots):
        for path in files_below(root):
            yield f"{place}{path[len(root) :]}", path


def _loaded_libraries() -> set[tuple[str, str]]:
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            name = os.path.basename(path)
            if name.startswith(_LIBRARIES):
                found.add((name, "/" + path))
    return found
