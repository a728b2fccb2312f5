# SPDX-License-Identifier: Apache-2.0
"""kiln.ExternalCache, the Python interface of external caches."""

import os
import signal
import threading
import time

import kiln
import pytest
from children import in_child


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "kiln")


def cache_in(folder, **settings):
    return kiln.Session({"cache.dir": folder, **settings}).external_cache("acme")


def test_put_is_found_by_other_session(folder):
    cache_in(folder).put(b"k\0ey", memoryview(b"code"), name="matmul", ms=12.5)
    assert cache_in(folder).get(b"k\0ey") == b"code"
    assert cache_in(folder).get(b"k") is None
    assert kiln.Session({"cache.dir": folder}).external_cache("other").get(b"k\0ey") is None


def test_miss_holds_claim_until_release(folder):
    def claim_is_free():
        data, claim = cache_in(folder).get_or_claim(b"k", 0)
        return data is None and claim is not None

    data, claim = cache_in(folder).get_or_claim(b"k", 10)
    assert data is None and isinstance(claim, kiln.CompileClaim)
    assert not in_child(claim_is_free)
    claim.release()
    claim.release()
    assert in_child(claim_is_free)
    with cache_in(folder).get_or_claim(b"k", 10)[1]:
        assert not in_child(claim_is_free)
    assert in_child(claim_is_free)


def test_waiting_for_claim_does_not_hold_gil(folder):
    cache = cache_in(folder)
    _, claim = cache.get_or_claim(b"k", 0)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(cache.get_or_claim(b"k", 60)))
    waiter.start()
    counted = 0
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        counted += 1
    assert waiter.is_alive() and counted > 1000
    cache.put(b"k", b"code")
    claim.release()
    waiter.join(60)
    assert answers == [(b"code", None)]


def test_ctrl_c_ends_wait_and_releases_claim(folder):
    cache = cache_in(folder)
    _, claim = cache.get_or_claim(b"k", 0)
    sent = []

    def press():
        time.sleep(0.2)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        presser.start()
        cache.get_or_claim(b"k", 60)
    took = time.monotonic() - sent[0]
    presser.join()
    print(f"a wait for a claim ended {took * 1e3:.0f} ms after Ctrl-C")
    assert took < 20
    claim.release()
    assert cache.get_or_claim(b"k", 0)[1] is not None


def test_failing_put_raises(folder):
    cache = kiln.Session({"cache.dir": "/proc/nowhere"}).external_cache("acme")
    with pytest.raises(kiln.Error):
        cache.put(b"k", b"code")
    with pytest.raises(TypeError):
        cache.put("not bytes", b"code")


def test_entries_are_counted_and_removed(folder):
    cache = cache_in(folder)
    for key in (b"a", b"b"):
        cache.put(key, b"code")
    assert cache.count() == 2 and cache.system == "acme"
    assert cache.remove(b"a") and not cache.remove(b"a")
    assert cache.clear() == 1 and cache.count() == 0
