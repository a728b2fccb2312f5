# SPDX-License-Identifier: Apache-2.0
"""kiln.compute under the real cuda.compute, which builds for sm_90 here. It loads its builds into the driver double,
which checks cubins and runs no device code."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.cccl", reason="cuda-cccl is not installed")

DOUBLE = os.environ.get("KILN_FAKE_DRIVER", "")
TOOLKIT = os.environ.get("KILN_TOOLKIT_LIBRARIES", "/usr/local/cuda/lib64")

if not os.path.exists(os.path.join(DOUBLE, "libcuda.so.1")):
    pytest.skip("KILN_FAKE_DRIVER names no folder with the driver's double", allow_module_level=True)
if not os.path.exists(os.path.join(TOOLKIT, "libnvrtc.so.13")):
    pytest.skip(f"{TOOLKIT} has no libnvrtc.so.13, which cuda.compute builds with", allow_module_level=True)


def builds(cache, *arguments):
    """Returns the builds of a new process."""
    environment = dict(
        os.environ,
        KILN_CACHE_DIR=str(cache),
        KILN_FAKE_DRIVER_DEVICES="sm_90",
        LD_LIBRARY_PATH=f"{DOUBLE}:{TOOLKIT}",
    )
    program = [sys.executable, str(pathlib.Path(__file__).with_name("compute_builds.py")), *arguments]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["installed"] == ("plain" not in arguments)
    return answer["builds"]


def test_ahead_of_time_build_serves_device_and_next_process(tmp_path):
    ahead, device = builds(tmp_path, "target,device")
    assert (ahead["compiles"], device["compiles"]) == (1, 0)
    again, loaded = builds(tmp_path, "target,device")
    assert (again["compiles"], loaded["compiles"]) == (0, 0)
    assert len({build["digest"] for build in (ahead, device, again, loaded)}) == 1


def test_missing_driver_or_unknown_release_changes_nothing_and_warns(tmp_path):
    program = """
import warnings
warnings.simplefilter("ignore")
import kiln.compute, cuda.cccl, cuda.compute
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert kiln.compute.install() is False
print(caught[-1].message)
"""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=200)
    if "no CUDA driver" not in done.stdout:
        pytest.skip("this machine has a CUDA driver")
    assert done.returncode == 0, done.stderr
    other = program.replace("with warn", "cuda.cccl.__version__ = '9.9'\nwith warn", 1)
    environment["LD_LIBRARY_PATH"] = f"{DOUBLE}:{TOOLKIT}"
    done = subprocess.run([sys.executable, "-c", other], env=environment, capture_output=True, text=True, timeout=200)
    assert "and not 9.9" in done.stdout, done.stderr
