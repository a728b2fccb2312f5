# SPDX-License-Identifier: Apache-2.0
"""Files of compiled CCCL algorithms that need no kiln to load: :func:`kiln.compute.save` and :func:`kiln.compute.load`.

A file is a ZIP archive with one member for each algorithm, in the form of ``cuda.compute.serialize``
(docs/internals/formats/small-files.md).
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import struct
import zipfile
import zlib
from typing import Any, Iterable, Optional, Union

from kiln import errors
from kiln._kiln import Session, Unit, cuda_compute_bytes

_VERSION = "kiln.compute 1"  # in the archive's comment, before the digest
_MAGIC = b"CCCLPYS1"  # of cuda.compute
_MAX_MEMBERS = 4096
_MAX_BYTES = 1 << 30  # of all members
_DATE = (1980, 1, 1, 0, 0, 0)  # equal inputs give equal archives

_Path = Union[str, "os.PathLike[str]"]
_Spec = Union[str, Unit]


def save(
    path: _Path,
    specs: Union[_Spec, Iterable[_Spec]],
    archs: Union[str, Iterable[str]],
    *,
    session: Optional[Session] = None,
    timeout: Optional[float] = None,
) -> list[str]:
    """Writes algorithms for several architectures into one file, and returns their names. Compiles what no cache has;
    no GPU and no driver is needed. A spec is a predefined name, a spec in JSON, or a unit of `Unit.cccl`. `timeout`
    limits the wait for each artifact in seconds; None means no limit."""
    import kiln

    session = session or kiln.shared
    several = [specs] if isinstance(specs, (str, Unit)) else list(specs)
    units = [spec if isinstance(spec, Unit) else Unit.cccl(spec) for spec in several]
    targets = list(dict.fromkeys([archs] if isinstance(archs, str) else archs))
    names = [unit.name for unit in units]
    if not units or not targets:
        raise _invalid("nothing to save: give at least one spec and one architecture")
    if len(set(names)) != len(names):
        raise _invalid("two specs have the same name; give each a name of its own")
    for target in targets:
        session.request(units, target)
    members = {
        unit.name: cuda_compute_bytes([session.artifact(unit, target, timeout) for target in targets])
        for unit in units
    }
    _write(os.fspath(path), members)
    return names


def load(path: _Path) -> dict[str, Any]:
    """Returns the algorithms of a file by name, as ``cuda.compute.deserialize`` returns them. They compile nothing; the
    first call of one loads the code for its device. An algorithm is for one thread at a time."""
    members = read(path)
    from cuda.compute import deserialize

    loaded = {}
    for name, data in members.items():
        try:
            loaded[name] = deserialize(data)
        except ValueError as error:
            raise errors.Unsupported(f"cannot load '{name}' of {path}: {error}", code="unsupported") from error
        except RuntimeError as error:
            raise errors.LoadRejected(f"cannot load '{name}' of {path}: {error}", code="load_rejected") from error
    return loaded


def read(path: _Path) -> dict[str, bytes]:
    """Returns the serialized algorithms of a file by name. Raises `kiln.Corrupt` if the file is damaged: cuda.compute
    does not detect changed bytes, so the archive has a digest."""
    with open(path, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise _corrupt(path, "it is too large")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            version, _, digest = archive.comment.decode("ascii").rpartition(" ")
            if version != _VERSION:
                raise _corrupt(path, "it was not written by this version of kiln.compute.save")
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > _MAX_BYTES:
                raise _corrupt(path, "it is too large")
            if any(member.compress_type != zipfile.ZIP_DEFLATED for member in members):
                raise _corrupt(path, "it uses another compression")
            found = {member.filename: archive.read(member) for member in members}
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError) as error:
        raise _corrupt(path, str(error)) from error
    for name, data in found.items():
        if not data.startswith(_MAGIC):
            raise _corrupt(path, f"'{name}' is not an algorithm of cuda.compute")
    if _digest(found) != digest:
        raise _corrupt(path, "its content does not match its digest")
    return found


def _digest(members: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in members.items():
        for part in (name.encode(), data):
            digest.update(struct.pack("<Q", len(part)))
            digest.update(part)
    return digest.hexdigest()


def _write(path: str, members: dict[str, bytes]) -> None:
    """Replaces the file atomically."""
    temporary = os.path.join(os.path.dirname(path), f".kiln-{secrets.token_hex(8)}")
    # The umask decides who can read it, as for any other file of the user.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.comment = f"{_VERSION} {_digest(members)}".encode()
                for name, data in members.items():
                    member = zipfile.ZipInfo(name, _DATE)
                    member.compress_type = zipfile.ZIP_DEFLATED
                    member.external_attr = 0o644 << 16
                    archive.writestr(member, data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _invalid(message: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(message, code="invalid_argument")


def _corrupt(path: _Path, cause: str) -> errors.Corrupt:
    return errors.Corrupt(f"cannot read {path}: {cause}; save it again", code="corrupt")
