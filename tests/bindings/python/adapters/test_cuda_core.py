"""kiln.cuda_core under the real cuda.core, whose NVRTC compiles for sm_90 here; nothing runs on a GPU."""

import gc
import os
import pathlib
import threading
import time

import pytest

pytest.importorskip("cuda.core", reason="cuda.core is not installed")

import kiln  # noqa: E402
from children import Child, in_child  # noqa: E402
from cuda.core import Program, ProgramOptions  # noqa: E402
from cuda.core.utils import FileStreamProgramCache, ProgramCacheResource, make_program_cache_key  # noqa: E402
from kiln import cuda_core  # noqa: E402
from kiln.cuda_core import ProgramCache  # noqa: E402

SOURCE = 'extern "C" __global__ void twice(int* x) { *x *= 2; }'
WRONG = "this is no program"


class Counting(ProgramCache):
    """Whoever compiles stores; nobody else does."""

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
    """So that children, who are forked, need not open it."""
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


def test_it_is_what_cuda_core_calls_a_cache():
    assert issubclass(ProgramCache, ProgramCacheResource)


def test_a_second_process_compiles_nothing_and_gets_the_same_code(folder):
    def one():
        cache = Counting(session(folder))
        return bytes(compile_with(cache).code), cache.stored

    code, stored = in_child(one)
    again, stored_again = in_child(one)
    assert (stored, stored_again) == (1, 0)
    assert again == code and code[:4] == b"\x7fELF"


def test_eight_processes_on_a_cold_key_compile_once_and_with_the_plain_cache_more_often(folder, tmp_path):
    def of(make):
        def one(start):
            time.sleep(max(0.0, start - time.time()))
            cache = make()
            code = bytes(compile_with(cache).code)
            return cache.stored, code

        children = [Child(one, time.time() + 0.5) for _ in range(8)]
        answers = [child.answer() for child in children]
        for child in children:
            child.end()
        assert len({code for _, code in answers}) == 1
        return sum(stored for stored, _ in answers)

    ours = of(lambda: Counting(session(folder)))
    theirs = of(lambda: CountingPlain(str(tmp_path / "plain")))
    print(f"compiles of 8 processes on one cold key: {ours} with kiln.cuda_core, {theirs} with FileStreamProgramCache")
    assert ours == 1


def test_a_compile_that_raises_keeps_nobody_waiting(folder):
    cache = ProgramCache(session(folder))
    with pytest.raises(Exception, match="no storage class|error"):
        compile_with(cache, WRONG)

    def another():
        start = time.monotonic()
        with pytest.raises(Exception, match="no storage class|error"):
            compile_with(ProgramCache(session(folder), wait=30), WRONG)
        return time.monotonic() - start

    assert in_child(another) < 10
    del cache


def test_a_turn_is_let_go_at_the_next_lookup_of_its_thread_and_not_before(folder):
    cache = ProgramCache(session(folder))
    mine = os.urandom(16)
    assert cache.get(mine) is None
    time.sleep(0.5)  # several looks of the thread that watches
    assert in_child(free, folder, mine) is False
    assert cache.get(os.urandom(16)) is None
    assert in_child(free, folder, mine) is True


def test_a_turn_whose_key_nobody_has_any_more_is_let_go(folder):
    cache = ProgramCache(session(folder))
    key = os.urandom(16)
    copy = bytes(bytearray(key))
    assert cache.get(key) is None
    assert in_child(free, folder, copy) is False
    del key
    deadline = time.monotonic() + 20
    while not in_child(free, folder, copy):
        assert time.monotonic() < deadline
    del cache


def test_a_turn_that_is_held_too_long_is_let_go(folder):
    cache = ProgramCache(session(folder), longest=0.2)
    key = os.urandom(16)
    assert cache.get(key) is None
    deadline = time.monotonic() + 20
    while not in_child(free, folder, key):
        assert time.monotonic() < deadline


def free(folder, key):
    """Whether nobody has the turn of a key."""
    cache = session(folder).foreign(cuda_core.SYSTEM)
    data, turn = cache.get_or_claim((cuda_core._nvrtc() or b"") + b"/" + key, 0)
    assert data is None
    return turn is not None


def test_threads_have_turns_of_their_own(folder):
    cache = ProgramCache(session(folder))
    keys = [os.urandom(16) for _ in range(2)]
    assert cache.get(keys[0]) is None
    thread = threading.Thread(target=lambda: cache.get(keys[1]))
    thread.start()
    thread.join()
    assert in_child(free, folder, keys[0]) is False
    cache[keys[0]] = b"code"
    assert ProgramCache(session(folder)).get(keys[0]) == b"code"


def test_a_damaged_entry_is_compiled_again_where_the_plain_cache_serves_it(folder, tmp_path):
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


def test_a_cache_that_cannot_be_written_costs_nothing_but_the_compile():
    events = []
    own = kiln.Session({"cache.dir": "/proc/nowhere"}, on_event=events.append)
    assert bytes(compile_with(ProgramCache(own, wait=0)).code)[:4] == b"\x7fELF"
    assert any(event.kind == "not_published" for event in events)


def test_it_is_a_mapping_as_the_protocol_has_it(folder):
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


def test_programs_of_two_releases_of_the_compiler_are_two(folder, monkeypatch):
    cache = Counting(session(folder))
    compile_with(cache)
    monkeypatch.setattr(cuda_core, "_nvrtc", lambda: b"another build")
    other = Counting(session(folder))
    compile_with(other)
    assert (cache.stored, other.stored) == (1, 1)


def test_the_compiler_that_is_open_is_told_by_its_build():
    assert len(cuda_core._nvrtc()) == 20


def test_events_call_it_by_the_name_of_the_program(folder):
    events = []
    own = kiln.Session({"cache.dir": folder}, on_event=events.append)
    compile_with(ProgramCache(own))
    compile_with(ProgramCache(own))
    hits = [event for event in events if event.kind == "hit"]
    assert [(event.unit, event.target, event.origin) for event in hits] == [("twice.cu", "cuda.core", "disk")]
    gc.collect()
