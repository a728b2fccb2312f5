# SPDX-License-Identifier: Apache-2.0
"""kiln.cuda_core under the real cuda.core, whose NVRTC compiles for sm_90 here; nothing runs on a GPU."""

import gc
import os
import pathlib
import threading
import time

import pytest

pytest.importorskip("cuda.core", reason="cuda.core is not installed")

import kiln  # noqa: E402
from children import in_child, in_eight_children  # noqa: E402
from cuda.core import Program, ProgramOptions  # noqa: E402
from cuda.core.utils import FileStreamProgramCache, ProgramCacheResource, make_program_cache_key  # noqa: E402
from kiln import cuda_core  # noqa: E402
from kiln.cuda_core import ProgramCache  # noqa: E402

SOURCE = 'extern "C" __global__ void twice(int* x) { *x *= 2; }'
WRONG = "this is no program"


class Counting(ProgramCache):
    """Counts stores: only a process that compiles stores."""

    stored = 0

    def __setitem__(self, key, value):
        self.stored += 1
        super().__setitem__(key, value)


class CountingPlain(FileStreamProgramCache):
    stored = 0

    def __setitem__(self, key, value):
        self.stored += 1
        super().__setitem__(key, value)


@pytest.fixture(scope="module", autouse=True)
def nvrtc_is_open():
    """Opens NVRTC once, so that forked children need not."""
    key_of(SOURCE)


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "kiln")


def session(folder, **settings):
    return kiln.Session({"cache.dir": folder, **settings})


def compile_with(cache, source=SOURCE, target="cubin"):
    options = ProgramOptions(arch="sm_90", name="twice.cu")
    return Program(source, "c++", options).compile(target, cache=cache)


def key_of(source):
    options = ProgramOptions(arch="sm_90", name="twice.cu")
    return make_program_cache_key(code=source, code_type="c++", options=options, target_type="cubin")


def entries(folder):
    return [path for path in pathlib.Path(folder, "v1", "entries").rglob("*") if path.is_file()]


def test_implements_cuda_core_cache_protocol():
    assert issubclass(ProgramCache, ProgramCacheResource)


def test_second_process_gets_same_code_without_compile(folder):
    def one():
        cache = Counting(session(folder))
        return bytes(compile_with(cache).code), cache.stored

    code, stored = in_child(one)
    again, stored_again = in_child(one)
    assert (stored, stored_again) == (1, 0)
    assert again == code and code[:4] == b"\x7fELF"


def test_eight_processes_compile_missing_key_once_unlike_plain_cache(folder, tmp_path):
    def of(make):
        def one(start):
            time.sleep(max(0.0, start - time.time()))
            cache = make()
            code = bytes(compile_with(cache).code)
            return cache.stored, code

        answers = in_eight_children(one, time.time() + 0.5)
        assert len({code for _, code in answers}) == 1
        return sum(stored for stored, _ in answers)

    ours = of(lambda: Counting(session(folder)))
    theirs = of(lambda: CountingPlain(str(tmp_path / "plain")))
    print(f"compiles of 8 processes on one cold key: {ours} with kiln.cuda_core, {theirs} with FileStreamProgramCache")
    assert ours == 1


def test_raising_compile_releases_claim(folder):
    cache = ProgramCache(session(folder))
    with pytest.raises(Exception, match="no storage class|error"):
        compile_with(cache, WRONG)

    def another():
        start = time.monotonic()
        with pytest.raises(Exception, match="no storage class|error"):
            compile_with(ProgramCache(session(folder), wait_timeout=120), WRONG)
        return time.monotonic() - start

    assert in_child(another) < 60
    del cache


def test_claim_is_released_at_next_lookup_of_its_thread(folder):
    cache = ProgramCache(session(folder))
    mine = os.urandom(16)
    assert cache.get(mine) is None
    time.sleep(0.5)  # several checks of the watching thread
    assert in_child(free, folder, mine) is False
    assert cache.get(os.urandom(16)) is None
    assert in_child(free, folder, mine) is True


def test_claim_is_released_when_key_is_unreferenced(folder):
    cache = ProgramCache(session(folder))
    key = os.urandom(16)
    copy = bytes(bytearray(key))
    assert cache.get(key) is None
    assert in_child(free, folder, copy) is False
    del key
    deadline = time.monotonic() + 120
    while not in_child(free, folder, copy):
        assert time.monotonic() < deadline
    del cache


def test_claim_held_too_long_is_released(folder):
    cache = ProgramCache(session(folder), max_hold=0.2)
    key = os.urandom(16)
    assert cache.get(key) is None
    deadline = time.monotonic() + 120
    while not in_child(free, folder, key):
        assert time.monotonic() < deadline


def free(folder, key):
    """Returns True if no process holds the claim of a key."""
    cache = session(folder).external_cache(cuda_core.SYSTEM)
    data, claim = cache.get_or_claim((cuda_core._nvrtc() or b"") + b"/" + key, 0)
    assert data is None
    return claim is not None


def test_threads_have_separate_claims(folder):
    cache = ProgramCache(session(folder))
    keys = [os.urandom(16) for _ in range(2)]
    assert cache.get(keys[0]) is None
    thread = threading.Thread(target=lambda: cache.get(keys[1]))
    thread.start()
    thread.join()
    assert in_child(free, folder, keys[0]) is False
    cache[keys[0]] = b"code"
    assert ProgramCache(session(folder)).get(keys[0]) == b"code"


def test_corrupt_entry_is_recompiled_unlike_plain_cache(folder, tmp_path):
    for cache, where, compiles in [
        (Counting(session(folder)), folder, 2),
        (CountingPlain(str(tmp_path / "plain")), str(tmp_path / "plain"), 1),
    ]:
        code = bytes(compile_with(cache).code)
        file = entries(where)[0] if compiles == 2 else next(pathlib.Path(where, "entries").rglob("*"))
        while file.is_dir():
            file = next(iter(file.iterdir()))
        data = bytearray(file.read_bytes())
        data[-100] ^= 1
        file.write_bytes(data)
        again = bytes(compile_with(cache).code)
        assert cache.stored == compiles
        assert (again == code) == (compiles == 2)


def test_unwritable_cache_costs_only_the_compile():
    events = []
    own = kiln.Session({"cache.dir": "/proc/nowhere"}, on_event=events.append)
    assert bytes(compile_with(ProgramCache(own, wait_timeout=0)).code)[:4] == b"\x7fELF"
    assert any(event.kind == "not_published" for event in events)


def test_implements_mapping_protocol(folder):
    with ProgramCache(session(folder)) as cache:
        cache.update({"a": b"1", b"b": bytearray(b"2")})
        assert cache[b"a"] == b"1" and cache["b"] == b"2"
        assert len(cache) == 2
        del cache["a"]
        with pytest.raises(KeyError):
            cache["a"]
        with pytest.raises(KeyError):
            del cache["a"]
        with pytest.raises(TypeError):
            cache.get(7)
        with pytest.raises(TypeError):
            cache["c"] = 7
        cache.clear()
        assert len(cache) == 0


def test_compiler_releases_do_not_share_programs(folder, monkeypatch):
    cache = Counting(session(folder))
    compile_with(cache)
    monkeypatch.setattr(cuda_core, "_nvrtc", lambda: b"another build")
    other = Counting(session(folder))
    compile_with(other)
    assert (cache.stored, other.stored) == (1, 1)


def test_open_compiler_is_identified_by_build_id():
    assert len(cuda_core._nvrtc()) == 20


def test_events_have_program_name(folder):
    events = []
    own = kiln.Session({"cache.dir": folder}, on_event=events.append)
    compile_with(ProgramCache(own))
    compile_with(ProgramCache(own))
    hits = [event for event in events if event.kind == "hit"]
    assert [(event.unit, event.target, event.origin) for event in hits] == [("twice.cu", "cuda.core", "disk")]
    gc.collect()
