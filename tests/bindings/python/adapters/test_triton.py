# SPDX-License-Identifier: Apache-2.0
"""kiln.triton under the real Triton, which compiles for sm_90 and gfx942 here; nothing runs on a GPU."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

import kiln.triton  # noqa: E402
import triton  # noqa: E402
from children import damage, in_child, in_eight_children  # noqa: E402
from kiln import _external, _file_cache, _memo  # noqa: E402
from triton_kernels import AMD, CUDA, add_one, build, does_not_compile  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def triton_knows_itself():
    """Computes Triton's digest of itself once in the parent, because it takes half a second in every process."""
    triton.runtime.cache.triton_key()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "kiln.triton:CacheManager")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "kiln"))
    return tmp_path / "kiln"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Returns a cache with one kernel and the result of its compile; for tests that modify a copy."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_MANAGER", "kiln.triton:CacheManager")
        patch.setenv("KILN_CACHE_DIR", str(folder))
        patch.delenv("TRITON_CACHE_DIR", raising=False)
        return folder, in_child(build)


@pytest.fixture
def warm(filled, cache):
    shutil.copytree(filled[0], cache)
    shutil.rmtree(cache / "files")
    return filled[1]


def entries(cache):
    """Returns the files of kiln's cache that contain compiled code."""
    files = [path for path in cache.rglob("*") if path.is_file() and "files" not in path.parts]
    return [path for path in files if path.stat().st_size > 10000]


def test_second_process_gets_same_code_without_compile(warm, cache):
    again = in_child(build)
    assert (warm["compiles"], again["compiles"]) == (1, 0)
    assert (again["cubin"], again["ptx"]) == (warm["cubin"], warm["ptx"])


def test_eight_processes_compile_missing_key_once(cache):
    answers = in_eight_children(build)
    assert sum(answer["compiles"] for answer in answers) == 1
    assert len({answer["cubin"] for answer in answers}) == 1


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_corrupt_entry_is_not_served(warm, cache, how):
    (entry,) = entries(cache)
    damage(entry, how, 1000)
    first, second = in_child(build), in_child(build)
    assert (first["compiles"], second["compiles"]) == (1, 0)  # it was compiled again, and is valid from then on
    assert first["cubin"] == second["cubin"] == warm["cubin"]


def test_corrupt_file_is_replaced_without_compile(warm, cache):
    cubin = pathlib.Path(in_child(build)["paths"]["add_one.cubin"])
    data = bytearray(cubin.read_bytes())
    data[1000] ^= 1
    cubin.write_bytes(data)
    again = in_child(build)
    assert (again["compiles"], again["cubin"]) == (0, warm["cubin"])
    assert cubin.read_bytes().hex() == warm["cubin"]


def test_intact_file_is_not_rewritten(warm, cache):
    cubin = in_child(build)["paths"]["add_one.cubin"]
    before = os.stat(cubin)
    assert in_child(build)["paths"]["add_one.cubin"] == cubin
    assert os.stat(cubin).st_ino == before.st_ino


def test_unwritable_directory_costs_only_compiles(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "file" / "kiln"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert in_child(build)["compiles"] == 1


def test_directory_writable_by_others_is_not_used(warm, cache, tmp_path):
    def folders_of(answer):
        assert (answer["compiles"], answer["cubin"]) == (0, warm["cubin"])
        return {os.path.dirname(os.path.dirname(path)) for path in answer["paths"].values()}

    of_triton, of_kiln = tmp_path / "triton", cache / "files" / "triton"
    of_triton.mkdir()
    of_triton.chmod(0o777)
    assert folders_of(in_child(build)) == {str(of_kiln)}
    of_kiln.chmod(0o777)
    assert not folders_of(in_child(build)) & {str(of_kiln), str(of_triton)}
    assert list(of_triton.iterdir()) == []


@pytest.mark.parametrize("target", [CUDA, AMD])
def test_inductor_finds_the_binary_in_the_directory_of_triton(cache, monkeypatch, tmp_path, target):
    cold = in_child(build, add_one, 64, target)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "another"))
    warm = in_child(build, add_one, 64, target)
    assert (cold["compiles"], warm["compiles"]) == (1, 0)
    # What StaticTritonCompileResult.can_statically_launch and reload_cubin_path of Inductor do, with triton_cache_dir and
    # triton_hash_to_path_key.
    for directory, answer in ((tmp_path / "triton", cold), (tmp_path / "another", warm)):
        key = triton.runtime.cache._base32(answer["hash"])
        binary = directory / key / ("add_one.cubin" if target is CUDA else "add_one.hsaco")
        assert binary.read_bytes().hex() == answer["cubin"] == cold["cubin"]


def test_files_are_in_the_cache_directory_without_a_directory_of_triton(warm, cache, monkeypatch):
    monkeypatch.delenv("TRITON_CACHE_DIR")
    paths = in_child(build)["paths"].values()
    assert all(path.startswith(str(cache / "files" / "triton")) for path in paths)


def test_symlink_is_replaced_and_not_followed(warm, cache, tmp_path):
    cubin = pathlib.Path(in_child(build)["paths"]["add_one.cubin"])
    other = tmp_path / "other"
    other.write_bytes(cubin.read_bytes())
    cubin.unlink()
    cubin.symlink_to(other)
    assert in_child(build)["cubin"] == warm["cubin"]
    assert not cubin.is_symlink()


def fail():
    try:
        build(does_not_compile)
    except triton.compiler.errors.CompileTimeAssertionFailure as error:
        return error
    raise AssertionError("it compiled")


def seconds_to_fail():
    begin = time.monotonic()
    fail()
    return time.monotonic() - begin


def test_raising_compile_does_not_block_next_one(cache):
    in_child(seconds_to_fail)

    def fails_and_keeps_the_exception():
        kept = [fail()]
        return in_child(seconds_to_fail), seconds_to_fail(), len(kept)

    other_process, same_thread, _ = in_child(fails_and_keeps_the_exception)
    assert other_process < 15 and same_thread < 15  # less than CacheManager.wait_timeout, which is 30


def test_wait_for_other_process_times_out(cache, monkeypatch):
    monkeypatch.setattr(kiln.triton.CacheManager, "wait_timeout", 0.3)

    def both_at_once():
        first, second = kiln.triton.CacheManager("KEY"), kiln.triton.CacheManager("KEY")
        assert first.get_group("a.json") is None
        waited = []

        def ask():
            begin = time.monotonic()
            assert second.get_group("a.json") is None
            waited.append(time.monotonic() - begin)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
        second.put_group("a.json", {"a.json": second.put("{}", "a.json")})  # stored without a claim
        third = kiln.triton.CacheManager("KEY").get_group("a.json")
        return waited, pathlib.Path(third["a.json"]).read_text()

    waited, text = in_child(both_at_once)
    assert 0.2 < waited[0] < 20 and text == "{}"


def test_single_files_are_stored_and_libraries_are_per_host(cache, monkeypatch):
    def put_and_get():
        kiln.triton.CacheManager("KEY").put(b"\x7fELF", "launcher.so")
        kiln.triton.CacheManager("KEY").put('{"configs": []}', "a.autotune.json")
        here = [kiln.triton.CacheManager("KEY").get_file(name) for name in ("launcher.so", "a.autotune.json")]
        monkeypatch.setattr(_external, "host_name", lambda: "another C library")
        there = [kiln.triton.CacheManager("KEY").get_file(name) for name in ("launcher.so", "a.autotune.json")]
        return [path is not None for path in here], [path is not None for path in there]

    assert in_child(put_and_get) == ([True, True], [False, True])
    assert [kiln.triton._file_entry("KEY", name)[0] for name in ("launcher.so", "a.json")] == ["triton.host", "triton"]


def test_group_with_outside_paths_is_rejected():
    for name in ("../a", "a/b", "..", "", "a\0b"):
        assert kiln.triton._unpack(kiln.triton._pack({name: b"x"})) is None
    assert kiln.triton._unpack(kiln.triton._pack({"a": b"x", "b": b""})) == {"a": b"x", "b": b""}


def test_truncated_group_is_rejected():
    whole = kiln.triton._pack({"a.json": b"{}", "a.cubin": b"\x7fELF" * 10})
    for size in range(len(whole)):
        assert kiln.triton._unpack(whole[:size]) is None
    assert kiln.triton._unpack(whole + b"x") is None


def test_import_of_triton_cache(cache, monkeypatch, capsys):
    monkeypatch.delenv("TRITON_CACHE_MANAGER")
    own = in_child(build)
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "kiln.triton:CacheManager")
    folder = os.environ["TRITON_CACHE_DIR"]
    assert in_child(kiln.triton._main, ["import", folder]) == 0
    taken = in_child(build)
    assert (own["compiles"], taken["compiles"], taken["cubin"]) == (1, 0, own["cubin"])
    assert in_child(kiln.triton._main, ["import", folder + "/nothing"]) == 1


def test_result_is_cached_until_files_change(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "kiln"))
    monkeypatch.setattr(_memo, "_SETTLED_SECONDS", 0.0)
    library = tmp_path / "libtriton.so"
    library.write_bytes(b"one")
    computed = []

    def ask():
        def compute():
            computed.append(1)
            return library.read_text()

        time.sleep(0.02)  # longer than a tick of the file system's clock, so that the stamps are stable
        return _memo.memoized(_file_cache.FileCache("triton"), "key", [str(library)], compute)

    assert [ask(), ask(), len(computed)] == ["one", "one", 1]
    library.write_bytes(b"two")
    assert [ask(), ask(), len(computed)] == ["two", "two", 2]


def test_directories_above_cache_are_private(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "home" / ".cache" / "kiln"))
    before = os.umask(0o022)
    try:
        _file_cache.FileCache("triton").materialize("folder", "name", b"bytes")
    finally:
        os.umask(before)
    modes = {path: (tmp_path / path).stat().st_mode & 0o777 for path in ("home", "home/.cache", "home/.cache/kiln")}
    assert modes == {"home": 0o700, "home/.cache": 0o700, "home/.cache/kiln": 0o755}


@pytest.mark.parametrize("parent", ["kiln", "kiln/files"])
def test_files_are_not_placed_where_others_can_replace_them(parent, tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "kiln"))
    (tmp_path / parent).mkdir(parents=True)
    (tmp_path / parent).chmod(0o777)
    path = _file_cache.FileCache("triton").materialize("folder", "name", b"bytes")
    assert not path.startswith(str(tmp_path / "kiln")), "another user could rename the directory"
    with open(path, "rb") as file:
        assert file.read() == b"bytes"


def test_umask_opens_no_directory_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "home" / "kiln"))
    before = os.umask(0)
    try:
        path = _file_cache.FileCache("triton").materialize("folder", "name", b"bytes")
        other = str(tmp_path / "other" / "triton")
        _file_cache.FileCache("triton", lambda: other).materialize("folder", "name", b"bytes")
    finally:
        os.umask(before)
    assert path.startswith(str(tmp_path / "home" / "kiln" / "files"))
    monkeypatch.chdir(tmp_path)
    assert os.path.exists(_file_cache.FileCache("triton", lambda: "relative/").materialize("folder", "name", b"bytes"))
    made = [found for top in ("home", "other") for found, _, _ in os.walk(tmp_path / top)]
    assert [found for found in made if os.stat(found).st_mode & 0o022] == []


def test_bundle_of_triton_code_serves_without_cache(warm, cache, tmp_path, monkeypatch):
    bundle = str(tmp_path / "kernels.kiln")
    create = [sys.executable, "-m", "kiln", "bundle", "create", "--external", "triton", "-o", bundle]
    done = subprocess.run(create, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "add_one.json" in done.stdout
    shutil.rmtree(cache)
    monkeypatch.setenv("KILN_BUNDLES", bundle)
    monkeypatch.setenv("KILN_TRUST_UNSIGNED", "true")
    served = in_child(build)
    assert (served["compiles"], served["cubin"]) == (0, warm["cubin"])
    assert entries(cache) == []  # so the bundle served it
    monkeypatch.delenv("KILN_BUNDLES")
    assert in_child(build)["compiles"] == 1
