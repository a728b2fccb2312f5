# SPDX-License-Identifier: Apache-2.0
"""What kiln writes of a CCCL algorithm, in every form: metadata in C++, C, Python and the command-line tool, and files
that cuda.compute reads in a process without kiln. One compile for sm_80. cuda.compute needs a libcuda to be imported: it
gets the driver double, which checks cubins and runs no device code."""

import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

import pytest

DOUBLE = os.environ.get("KILN_FAKE_DRIVER", "")
TOOLKIT = os.environ.get("KILN_TOOLKIT_LIBRARIES", "/usr/local/cuda/lib64")
LIBKILN = os.environ.get("KILN_SHARED_LIBRARY", "")
CACHE = tempfile.TemporaryDirectory(prefix="kiln-cccl-files-")  # removed when the process ends
for name in [name for name in os.environ if name.startswith("KILN_")]:
    del os.environ[name]  # settings of the caller
os.environ["KILN_CACHE_DIR"] = CACHE.name

import kiln  # noqa: E402
import kiln.compute  # noqa: E402
from kiln import __main__ as tool  # noqa: E402
from kiln import _compute_files as files  # noqa: E402

cccl = pytest.importorskip("cuda.cccl", reason="cuda-cccl is not installed")
os.environ["KILN_CCCL"] = str(pathlib.Path(cccl.__file__).parents[2])
os.environ["KILN_FAKE_DRIVER_DEVICES"] = "sm_80"

SPEC = "reduce_sum_f64"

if not os.path.exists(os.path.join(DOUBLE, "libcuda.so.1")):
    pytest.skip("KILN_FAKE_DRIVER names no folder with the driver's double", allow_module_level=True)


@pytest.fixture(scope="module")
def artifact():
    return kiln.artifact(kiln.Unit.cccl(SPEC), "sm_80")


def kiln_tool(*arguments):
    done = subprocess.run([tool.program(), *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_kiln(program, *arguments):
    """Runs a program that cannot import kiln, with the driver double."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["LD_LIBRARY_PATH"] = f"{DOUBLE}:{TOOLKIT}"
    check = "import sys\nassert not any(name.split('.')[0] == 'kiln' for name in sys.modules)\n"
    command = [sys.executable, "-B", "-c", program + check, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


class CcclInfo(ctypes.Structure):
    """kiln_cccl_info of kiln.h."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("policy_bytes", ctypes.c_size_t),
        ("capability", ctypes.c_uint32),
        ("kernel_count", ctypes.c_uint32),
    ]


def form_of_c():
    """Returns the metadata and the library's bytes through libkiln's C functions."""
    library = ctypes.CDLL(LIBKILN)
    library.kiln_artifact_entry.restype = ctypes.c_char_p
    session, unit, found = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert library.kiln_session_open(None, ctypes.byref(session), None) == 0
    assert library.kiln_unit_cccl(SPEC.encode(), ctypes.byref(unit), None) == 0
    forever = ctypes.c_int64(2**63 - 1)
    assert library.kiln_session_artifact(session, unit, b"sm_80", forever, ctypes.byref(found), None) == 0
    info = CcclInfo(size=ctypes.sizeof(CcclInfo))
    assert library.kiln_artifact_cccl(found, ctypes.byref(info), None) == 0
    names = [library.kiln_artifact_entry(found, ctypes.c_size_t(i)).decode() for i in range(info.kernel_count)]
    assert library.kiln_artifact_entry(found, ctypes.c_size_t(info.kernel_count)) is None
    data = ctypes.string_at(info.data, info.bytes)
    library.kiln_artifact_free(found)
    library.kiln_unit_free(unit)
    library.kiln_session_free(session)
    return {"capability": info.capability, "policy_bytes": info.policy_bytes, "kernels": names}, data


def test_metadata_is_the_same_in_every_form(artifact, tmp_path):
    info = artifact.cccl
    expected = {"capability": 80, "policy_bytes": info.policy_bytes, "kernels": info.kernels}
    assert info.capability == 80 and info.policy_bytes > 0 and len(info.kernels) > 1
    assert artifact.symbols == {name: name for name in info.kernels}
    print(f"\nPython: {info!r}\n  symbols: {list(artifact.symbols)}")

    compiled = json.loads(kiln_tool("compile", "--cccl", SPEC, "--arch", "sm_80", "--json"))["results"][0]
    assert compiled["origin"] == "disk"
    assert sorted(compiled["entries"]) == sorted(info.kernels)
    print(f"C++ Artifact.entries, as kiln compile --json prints them: {list(compiled['entries'])}")

    def reduced(found):
        return {name: found["cccl"][name] for name in expected}

    assert reduced(json.loads(kiln_tool("cache", "show", compiled["key"], "--json"))) == expected
    text = kiln_tool("cache", "show", compiled["key"])
    assert all(word in text for word in ("capability", f"{info.policy_bytes} bytes", *info.kernels)), text
    print("kiln cache show:\n" + text)

    bundle = str(tmp_path / "one.kiln")
    manifest = tmp_path / "kiln.toml"
    manifest.write_text(f'architectures = ["sm_80"]\n[[cccl]]\nspec = "{SPEC}"\n')
    kiln_tool("bundle", "create", str(manifest), "-o", bundle)
    assert reduced(json.loads(kiln_tool("bundle", "ls", bundle, "--json"))["artifacts"][0]) == expected
    text = kiln_tool("bundle", "ls", bundle)
    assert all(word in text for word in ("capability 80", f"{info.policy_bytes} bytes", *info.kernels)), text
    print("kiln bundle ls:\n" + text)

    if LIBKILN:
        described, data = form_of_c()
        assert described == expected
        assert data == artifact.library_bytes
        print(f"C: {described}")


def test_other_artifacts_have_no_cccl_form():
    cubin = kiln.artifact(kiln.Unit.cuda("k.cu", 'extern "C" __global__ void k() {}', entries="k"), "sm_80")
    assert cubin.cccl is None
    with pytest.raises(kiln.InvalidArgument):
        _ = cubin.library_bytes


def test_cuda_compute_without_kiln_reads_what_kiln_wrote(artifact, tmp_path):
    """The build result from the library's form, the algorithm from cuda.compute's; both write back the same bytes."""
    library, compute, saved = tmp_path / "reduce.blob", tmp_path / "reduce.compute", tmp_path / "algorithms"
    kiln_tool("compile", "--cccl", SPEC, "--arch", "sm_80", "--format", "cccl", "-o", str(library))
    kiln_tool("compile", "--cccl", SPEC, "--arch", "sm_80", "--format", "cuda.compute", "-o", str(compute))
    assert library.read_bytes() == artifact.library_bytes
    assert kiln.compute.save(saved, SPEC, "sm_80") == [SPEC]
    assert files.read(saved) == {SPEC: compute.read_bytes()}
    program = """
import pathlib, sys, zipfile
import cuda.compute, numpy
from cuda.compute import _bindings
from cuda.compute import _cccl_interop as interop
library, whole = (pathlib.Path(path).read_bytes() for path in sys.argv[1:3])
build = _bindings.DeviceReduceBuildResult.deserialize(library, load=True, check_cc=False)
assert build.serialize() == library
algorithm = cuda.compute.deserialize(whole)
assert cuda.compute.serialize(algorithm) == whole
# Given this build, cuda.compute's own factory writes the same bytes.
interop.call_compile = lambda *args, **kwargs: build
made = cuda.compute.make_reduce_into(
    d_in=cuda.compute.ProxyArray(numpy.float64), d_out=cuda.compute.ProxyArray(numpy.float64),
    op=cuda.compute.OpKind.PLUS, h_init=numpy.zeros(1), compute_capability=80)
assert cuda.compute.serialize(made) == whole
from cuda.core import Device
Device(0).set_current()
assert interop.resolve_build_result(algorithm.build_results, None) is not None  # loaded for the device, not compiled
member, = zipfile.ZipFile(sys.argv[3]).namelist()
assert zipfile.ZipFile(sys.argv[3]).read(member) == whole
print("without kiln:", type(build).__name__, type(algorithm).__name__, list(algorithm.build_results))
"""
    said = without_kiln(program, library, compute, saved)
    print(f"\n{said.strip()} (driver double)")
    assert said.split()[-3:] == ["DeviceReduceBuildResult", "_Reduce", "[80]"]


def test_load_returns_algorithms_of_cuda_compute(artifact, tmp_path):
    saved = tmp_path / "algorithms"
    kiln.compute.save(saved, [SPEC], ["sm_80"])
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{DOUBLE}:{TOOLKIT}"}
    program = "import sys, kiln.compute; print({k: type(v).__name__ for k, v in kiln.compute.load(sys.argv[1]).items()})"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(saved)], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.stdout.strip() == str({SPEC: "_Reduce"}), done.stderr


def test_damaged_files_are_refused_or_unchanged(tmp_path):
    path = tmp_path / "algorithms"
    members = {"one": b"CCCLPYS1" + bytes(range(256)), "two": b"CCCLPYS1" + b"x" * 5000}
    files._write(str(path), members)
    assert files.read(path) == members
    whole = path.read_bytes()
    randomness = random.Random(27)
    for _ in range(500):
        damaged = bytearray(whole)
        damaged[randomness.randrange(len(whole))] ^= 1 << randomness.randrange(8)
        path.write_bytes(damaged)
        try:
            assert files.read(path) == members
        except kiln.Corrupt as error:
            assert "save it again" in str(error)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(kiln.Corrupt):
            files.read(path)


def test_other_archives_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "algorithms"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one", b"CCCLPYS1")
    with pytest.raises(kiln.Corrupt, match="not written by this version"):
        files.read(path)
    files._write(str(path), {"one": b"PK"})
    with pytest.raises(kiln.Corrupt, match="not an algorithm"):
        files.read(path)
    files._write(str(path), {"one": b"CCCLPYS1" + b"x" * 1000})
    monkeypatch.setattr(files, "_MAX_BYTES", 999)
    with pytest.raises(kiln.Corrupt, match="too large"):
        files.read(path)
    assert list(pathlib.Path(tmp_path).iterdir()) == [path], "no temporary file is left"


def test_umask_decides_who_can_read_a_file(tmp_path):
    before = os.umask(0o077)
    try:
        files._write(str(tmp_path / "private"), {})
        os.umask(0o002)
        files._write(str(tmp_path / "shared"), {})
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("private", "shared")]
    assert modes == [0o600, 0o664]


def test_save_checks_its_arguments(tmp_path):
    for specs, archs in (([], "sm_80"), (SPEC, []), ([SPEC, SPEC], "sm_80"), ("no_such_spec", "sm_80")):
        with pytest.raises(kiln.InvalidArgument):
            kiln.compute.save(tmp_path / "x", specs, archs)
