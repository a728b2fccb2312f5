# SPDX-License-Identifier: Apache-2.0
"""kiln.compute.request_warmup and kiln.compute.call without compiles: what is requested, and what is not."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
DOUBLE = os.environ.get("KILN_FAKE_DRIVER", "")
TOOLKIT = os.environ.get("KILN_TOOLKIT_LIBRARIES", "/usr/local/cuda/lib64")
WITHOUT_DEVICE = not os.path.exists("/dev/nvidiactl")

pytest.importorskip("cuda.cccl", reason="cuda-cccl is not installed")
if not os.path.exists(os.path.join(DOUBLE, "libcuda.so.1")):
    pytest.skip("KILN_FAKE_DRIVER names no folder with the driver's double", allow_module_level=True)


def run(folder, program, **variables):
    """Returns what a new process prints as JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment["PYTHONPATH"] += os.pathsep + str(HERE)
    environment.update(KILN_CACHE_DIR=str(folder), **variables)
    arguments = ["-c", program] if "\n" in program else [str(HERE / program)]
    done = subprocess.run(
        [sys.executable, "-B", *arguments], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def with_double(folder, program, **variables):
    libraries = f"{DOUBLE}:{TOOLKIT}"
    return run(folder, program, LD_LIBRARY_PATH=libraries, KILN_FAKE_DRIVER_DEVICES="sm_80", **variables)


def details(trace, kind):
    """Returns the arguments of the events of a kind."""
    all_of_it = json.loads(trace.read_text())["traceEvents"]
    return [event["args"] for event in all_of_it if event.get("cat") == kind]


def messages(trace, kind):
    return [event["message"] for event in details(trace, kind)]


def test_call_written_as_data_is_the_unit_of_its_name(tmp_path):
    program = """
import json, kiln, kiln.compute
from kiln.compute import call
calls = {
    "exclusive_scan_i32": call("exclusive_scan", dtype="i32", op="sum"),
    json.dumps({"algorithm": "scan", "iterators": ["i32", "i64"], "operators": ["plus"], "type": "i32", "init": "none",
                "inclusive": True}): call("inclusive_scan", dtype="i32", out_dtype="i64", op="sum"),
    json.dumps({"algorithm": "scan", "iterators": ["i32", "i64"], "operators": ["plus"], "type": "i64", "init": "value",
                "inclusive": True}): call("inclusive_scan", dtype="i32", out_dtype="i64", op="sum", init="value"),
    "reduce_sum_f64": call("reduce_into", dtype="float64", op="plus"),
    "segmented_reduce_min_f64": call("segmented_reduce", dtype="f64", op="min"),
    "upper_bound_u64": call("upper_bound", dtype="uint64"),
    "radix_sort_u64_i32": call("radix_sort", dtype="u64", value_dtype="int32"),
    "merge_sort_u64_i32": call("merge_sort", dtype="u64", value_dtype="i32"),
    "unique_by_key_i32_i32": call("unique_by_key", dtype="i32", value_dtype="i32"),
}
errors = []
for wrong in (dict(algorithm="sort", dtype="i32"), dict(algorithm="radix_sort", dtype="i32"),
              dict(algorithm="reduce_into", dtype="i31", op="sum"), dict(algorithm="reduce_into", dtype="i32", op="mean"),
              dict(algorithm="reduce_into", dtype="i32", op="sum", order="ascending")):
    try:
        call(**wrong)
        errors.append("")
    except ValueError as error:
        errors.append(str(error))
print(json.dumps([[kiln.Unit.cccl(name).key == unit.key for name, unit in calls.items()], errors]))
"""
    equal, errors = run(tmp_path, program)
    assert all(equal), equal
    for error, word in zip(errors, ("use one of", "value_dtype", "i31", "operators", "order")):
        assert word in error


@pytest.mark.skipif(not WITHOUT_DEVICE, reason="this machine has a CUDA device")
def test_request_without_device_does_nothing(tmp_path):
    program = """
import json, os, sys, kiln, kiln.compute
def state():
    maps = open("/proc/self/maps").read()
    return [len(os.listdir("/proc/self/task")), [lib for lib in ("libcuda", "libnvrtc", "libcccl") if lib in maps]]
before = state()
kiln.compute.request_warmup(["select_i32", kiln.compute.call("reduce_into", dtype="f64", op="sum"), lambda capability: 1 / 0])
errors = []
for wrong in ("sort_i32", 3, [3]):
    try:
        kiln.compute.request_warmup(wrong)
    except (ValueError, TypeError) as error:
        errors.append(type(error).__name__)
print(json.dumps([before == state(), state(), "cuda.compute" in sys.modules, kiln.status().submitted, errors]))
"""
    same, state, imported, submitted, errors = run(tmp_path, program)
    assert same and state == [1, []] and not imported and submitted == 0
    assert errors == ["InvalidArgument", "TypeError", "TypeError"]


def test_requests_of_several_modules_are_one_request_each(tmp_path):
    program = """
import json, threading, time, kiln, kiln.compute
kiln.compute.request_warmup(["reduce_sum_i32", "reduce_sum_f64"], arch="sm_80")
kiln.compute.request_warmup([kiln.compute.call("reduce_into", dtype="i32", op="sum")], arch=[80, (9, 0)])
seen = []
def build(capability):
    thread = threading.current_thread()
    seen.append([capability, thread.name, thread.daemon])
def fails(capability):
    raise RuntimeError("no such operator")
def ends(capability):
    raise SystemExit("not from here")
for _ in range(2):
    kiln.compute.request_warmup([ends, fails, build], arch=80)
deadline = time.monotonic() + 120
while not seen or any(thread.name == "kiln-compute" for thread in threading.enumerate()):
    assert time.monotonic() < deadline
    time.sleep(0.01)
kiln.shared.write_trace()
units = sorted((unit.unit, unit.target) for unit in kiln.status().units)
print(json.dumps([units, seen]))
"""
    trace = tmp_path / "trace.json"
    units, seen = with_double(tmp_path, program, KILN_COMPILE="never", KILN_TRACE=str(trace))
    assert [name for name, _ in units].count("reduce_sum_f64") == 1 and len(units) == 3, units
    assert seen == [[80, "kiln-compute", True]]
    failed = messages(trace, "compile_failed")
    assert failed == ["SystemExit: not from here", "RuntimeError: no such operator"]


def test_background_thread_survives_its_work_and_keeps_no_functions(tmp_path):
    program = """
import gc, json, threading, time, weakref, kiln
from kiln._compute_warmup import _Background

class Unhashable:
    __hash__ = None
    def __call__(self, capability):
        pass

def wait_for(done):
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)

background, done, start = _Background(), [], threading.Thread.start
def no_thread(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = no_thread
background.add("key", lambda: done.append("lost"))
threading.Thread.start = start
background.add("raises", lambda: 1 / 0)
background.add("key", lambda: done.append("key"))
background.add("key", lambda: done.append("again"))
made = lambda capability: None
background.add("sm_80", lambda: done.append("made"), made)
background.add("sm_80", lambda: done.append("made again"), made)
background.add("sm_80", lambda: done.append("unhashable"), Unhashable())
wait_for(lambda: len(done) == 3)
reference = weakref.ref(made)
del made
gc.collect()
kiln.shared.write_trace()
print(json.dumps([done, reference() is None]))
"""
    trace = tmp_path / "trace.json"
    done, is_freed = run(tmp_path, program, KILN_TRACE=str(trace))
    assert done == ["key", "made", "unhashable"] and is_freed
    assert messages(trace, "compile_failed") == ["ZeroDivisionError: division by zero"]


def test_device_is_found_in_the_background(tmp_path):
    program = """
import json, time, kiln, kiln.compute
for _ in range(3):
    kiln.compute.request_warmup("reduce_sum_i32")
deadline = time.monotonic() + 120
while not kiln.status().units or kiln.status().pending:
    assert time.monotonic() < deadline
    time.sleep(0.01)
print(json.dumps([[unit.unit, unit.target] for unit in kiln.status().units]))
"""
    variables = {"KILN_DRIVER": os.path.join(DOUBLE, "libcuda.so.1"), "KILN_COMPILE": "never"}
    ((unit, target),) = with_double(tmp_path, program, **variables)
    assert unit == "reduce_sum_i32" and target.endswith("80")


def test_only_builds_that_a_spec_describes_are_units(tmp_path):
    answers = with_double(tmp_path, "compute_mapping.py")
    # A sort of proxies is built for keys alone, and must not serve one that has values.
    assert answers.pop("keys of a sort of proxies and of arrays") is False
    assert answers.pop("keys of a transform of proxies and of arrays") is True
    fields = {name: json.loads(spec) if spec else None for name, spec in answers.items()}
    assert fields["reduce"] == {
        "version": 1,
        "algorithm": "reduce",
        "iterators": ["i32", "i32"],
        "operators": ["plus"],
        "type": "i32",
        "init": "value",
        "determinism": "run_to_run",
    }
    assert fields["reduce of proxies"] == fields["reduce"]
    assert fields["reduce to another type"]["type"] == "f64"
    assert fields["reduce to another type"]["iterators"] == ["i32", "f64"]
    assert fields["reduce without init"]["init"] == "none"
    assert fields["inclusive scan"]["inclusive"] and fields["inclusive scan"]["init"] == "none"
    assert fields["scan from the device"]["init"] == "future" and not fields["scan from the device"]["inclusive"]
    assert fields["descending"]["order"] == "descending"
    assert fields["sort of structs"]["iterators"] == ["i32", {"alignment": 4, "storage": 8}]
    assert fields["transform"]["iterators"] == ["i32", "f64"] and fields["transform"]["operators"] == ["negate"]
    without = ("operator with code", "keys alone", "merge sort of keys", "sort of proxies", "histogram")
    for name in (*without, "another iterator", "an unknown argument", "another count"):
        assert answers[name] is None, name


def test_build_is_the_callers_own_if_kiln_cannot(tmp_path):
    program = """
import json, compute_algorithms, kiln, kiln.compute
from cuda.compute import _cccl_interop as interop

class Build:
    def serialize(self):
        return b"bytes"

class DeviceHistogramBuildResult:
    @staticmethod
    def deserialize(data, load, check_cc):
        return Build()

own = []
interop.call_compile = lambda kind, *args, cc: own.append(kind.__name__) or Build()
assert kiln.compute.install()
compute_algorithms.make("reduce_sum_i32", compute_capability=80)
for _ in range(2):
    interop.call_compile(DeviceHistogramBuildResult, 256, cc=(8, 0))
kiln.shared.write_trace()
print(json.dumps(own))
"""
    trace = tmp_path / "trace.json"
    variables = {"KILN_CCCL": "/nonexistent", "KILN_TRACE": str(trace)}
    answer = with_double(tmp_path, program, **variables)
    assert answer == ["DeviceReduceBuildResult", "DeviceHistogramBuildResult"]
    unit, other = details(trace, "build_missed")
    assert "/nonexistent" in unit["message"] and unit["unit"] == "reduce_i32" and unit["target"] == "sm_80"
    assert other["unit"] == "Histogram" and unit["warm"] is other["warm"] is False
    (served,) = details(trace, "build_served")
    assert (served["message"], served["origin"], served["warm"]) == ("Histogram", "disk", True)
    # A build puts nothing on a stream: it is no call, and reports count no launch.
    assert not details(trace, "called_compiled") and not details(trace, "called_fallback")


def test_compile_that_has_begun_is_waited_for(tmp_path):
    program = """
import json, types, kiln, kiln.compute

class Shared:
    def __init__(self, state):
        self.state, self.waits = state, []
    def resolve(self, unit, target, timeout):
        self.waits.append(timeout)
        raise kiln.TimedOut("not ready yet")
    def status(self, all):
        return types.SimpleNamespace(units=[types.SimpleNamespace(unit=unit.label, state=self.state)])

kiln.compute.ready_timeout, kiln.compute.wait_timeout = 2.0, 30.0
unit = kiln.Unit.cccl("reduce_sum_i32")
waits = {}
for state in ("running", "queued"):
    kiln.shared = Shared(state)
    try:
        kiln.compute._resolve(unit, "sm_80")
    except kiln.TimedOut:
        waits[state] = kiln.shared.waits
print(json.dumps(waits))
"""
    assert run(tmp_path, program) == {"running": [2.0, 30.0], "queued": [2.0]}


def test_digest_of_the_toolchain_covers_names_and_contents(tmp_path):
    headers = tmp_path / "include"
    for name in ("b.h", "a.h", "a/z.h", "a/y.h", "a.d/x.h", "__pycache__/ignored.pyc"):
        (headers / name).parent.mkdir(parents=True, exist_ok=True)
        (headers / name).write_text(name)
    (headers / "link").symlink_to(headers / "a")  # a loop would have no end
    library = tmp_path / "library.so"
    library.write_text("library")
    program = f"""
import json, os, kiln

def digest():
    return kiln.shared._content_digest([("library.so", {str(library)!r})], [("0", {str(headers)!r})])

first = digest()
with open({str(headers / "a" / "y.h")!r}, "w") as file:
    file.write("edited")
edited = digest()
os.remove({str(library)!r})
print(json.dumps([first, edited, digest()]))
"""
    names = ("a.h", "b.h", "a/y.h", "a/z.h", "a.d/x.h")  # files first; directories in order: "a" before "a.d"
    expected = hashlib.sha256()
    for name, text in (("library.so", "library"), *((f"0/{name}", name) for name in names)):
        expected.update(name.encode() + b"\0" + hashlib.sha256(text.encode()).digest())
    first, edited, missing = run(tmp_path / "cache", program)
    assert first == expected.hexdigest()
    assert edited not in ("", first) and missing == ""


def test_operators_have_names_by_content_unless_another_has_the_name(tmp_path):
    program = """
import json
from kiln._compute_names import _stable_name

def above(limit):
    return lambda x: x > limit

def positive(x):
    return x > 0

one, two = above(1), above(2)
names = [_stable_name(op, types, value) for op, types, value in
         ((positive, "i32", 0), (positive, "i32", 0), (positive, "i64", 0), (one, "i32", 1), (two, "i32", 2), (one, "i32", 1))]
print(json.dumps(names))
"""
    first, same, other_types, one, two, again = run(tmp_path, program)
    assert first == same != other_types and first.startswith("positive_kiln")
    assert one == again and two == ""
    assert run(tmp_path, program)[0] == first
