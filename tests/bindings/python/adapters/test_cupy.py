# SPDX-License-Identifier: Apache-2.0
"""kiln.cupy under CuPy's own compiler module, which compiles with NVRTC for sm_90 here; nothing runs on a GPU."""

import logging
import subprocess
import sys
import time

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")

import cupy  # noqa: E402
import kiln.cupy  # noqa: E402
from children import damage, in_child, in_eight_children  # noqa: E402
from cupy.cuda import compiler  # noqa: E402
from cupy_kernels import SOURCE, build  # noqa: E402


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "kiln"))
    monkeypatch.setattr(compiler, "_kernel_cache_backend", None)
    assert kiln.cupy.install()
    return tmp_path / "kiln"


def entries(cache):
    """Returns the files of kiln's cache that contain compiled code."""
    return [path for path in cache.rglob("*") if path.is_file() and b"\x7fELF" in path.read_bytes()]


def test_second_process_gets_same_code_without_compile(cache):
    cold, warm = in_child(build), in_child(build)
    assert (cold["compiles"], warm["compiles"]) == (1, 0)
    assert cold["code"] == warm["code"] != ""
    (entry,) = entries(cache)
    assert b"double_it" in entry.read_bytes()[:4096]  # the name that listings show


def test_names_of_instances_are_stored_with_the_code(cache):
    names = ["scale<float>", "scale<double>"]
    cold, warm = in_child(build, SOURCE, names), in_child(build, SOURCE, names)
    assert (cold["compiles"], warm["compiles"]) == (1, 0)
    assert cold["mapping"] == warm["mapping"] and len(set(warm["mapping"].values())) == 2


def test_eight_processes_compile_missing_key_once(cache):
    answers = in_eight_children(build)
    assert sum(answer["compiles"] for answer in answers) == 1
    assert len({answer["code"] for answer in answers}) == 1


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_corrupt_entry_is_not_served(cache, how):
    cold = in_child(build)
    (entry,) = entries(cache)
    damage(entry, how, 100)
    first, second = in_child(build), in_child(build)
    assert (first["compiles"], second["compiles"]) == (1, 0)
    assert first["code"] == second["code"] == cold["code"]


def test_entry_that_cupy_rejects_is_replaced(cache):
    names = ["scale<float>"]

    def store_something_else():
        load = kiln.cupy.Backend.load
        stored = []

        def remember(self, name):
            stored.append(name)
            return load(self, name)

        kiln.cupy.Backend.load = remember
        build(SOURCE, names)
        kiln.cupy._external.KeyedCache("cupy").store(stored[0].encode(), b"no payload of CuPy", "x")

    in_child(store_something_else)
    first, second = in_child(build, SOURCE, names), in_child(build, SOURCE, names)
    assert (first["compiles"], second["compiles"]) == (1, 0)


def test_raising_compile_does_not_block_next_one(cache):
    def seconds_to_fail():
        begin = time.monotonic()
        with pytest.raises(compiler.CompileException):
            build("#error no kernel")
        return time.monotonic() - begin

    def both():
        return seconds_to_fail(), in_child(seconds_to_fail), seconds_to_fail()

    assert max(in_child(both)) < 15  # less than Backend.wait_timeout, which is 30


def test_unwritable_directory_costs_only_compiles(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "file" / "kiln"))
    assert in_child(build)["compiles"] == 1


def test_unknown_release_is_not_changed(monkeypatch, caplog):
    before = compiler._kernel_cache_backend
    monkeypatch.setattr(cupy, "__version__", "15.0.0")
    with caplog.at_level(logging.WARNING, "kiln"):
        assert not kiln.cupy.install()
    assert compiler._kernel_cache_backend is before
    assert "kiln supports 14.2.* and not 15.0.0" in caplog.text


def test_bundle_serves_without_cache(cache, tmp_path, monkeypatch):
    cold = in_child(build)
    bundle = str(tmp_path / "kernels.kiln")
    create = [sys.executable, "-m", "kiln", "bundle", "create", "--external", "cupy", "-o", bundle]
    done = subprocess.run(create, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "double_it" in done.stdout
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "another"))
    monkeypatch.setenv("KILN_BUNDLES", bundle)
    monkeypatch.setenv("KILN_TRUST_UNSIGNED", "true")
    served = in_child(build)
    assert (served["compiles"], served["code"]) == (0, cold["code"])
