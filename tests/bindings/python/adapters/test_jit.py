# SPDX-License-Identifier: Apache-2.0
"""kiln.jit.install() with packages that the tests write, and the package that FlashInfer imports."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
PROVIDER = ROOT / "packaging" / "flashinfer_jit_cache"

# The modules of a system that the adapter imports, with the members that it uses.
JAX = {
    "jax/__init__.py": "__version__ = '{version}'\nclass config:\n    update = print\n",
    "jax/_src/__init__.py": "",
    "jax/_src/config.py": "class _Value:\n    value = 0\n"
    "persistent_cache_min_compile_time_secs = persistent_cache_min_entry_size_bytes = compilation_cache_dir = _Value\n",
    "jax/_src/distributed.py": "class global_state:\n    client = None\n",
    "jax/_src/compilation_cache_interface.py": "class CacheInterface: pass\n",
    "jax/_src/compilation_cache.py": "_cache = zstd = zstandard = None\ndef reset_cache(): pass\n",
}


def run(program, folder, **variables):
    """Returns the output and the errors of a program that finds the packages in a folder and no others."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KILN_", "TRITON_", "FLASHINFER_"))}
    environment = {**clean, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ['PYTHONPATH']}", "HOME": str(folder), **variables}
    command = [sys.executable, "-B", "-S", "-c", program]  # -S: without the packages of the environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def distribution(folder, name, version, files=()):
    (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for path, text in dict(files).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.replace("{version}", version))


def test_absent_systems_are_reported(tmp_path):
    program = "import kiln.jit\nfor name, one in kiln.jit.install().items(): print(name, one.installed, repr(one.reason))"
    output, errors = run(program, tmp_path)
    assert " ".join(output).count("is not installed") == 3 and "True" not in output and errors == ""


def test_triton_is_not_imported(tmp_path):
    distribution(tmp_path, "triton", "3.9.0", {"triton.py": "raise RuntimeError('imported')"})
    program = "import kiln.jit, os; print(kiln.jit.install()['triton'].installed, os.environ['TRITON_CACHE_MANAGER'])"
    assert run(program, tmp_path)[0] == ["True", "kiln.triton:CacheManager"]
    program = "import kiln.jit; print(kiln.jit.install()['triton'].installed)"
    assert run(program, tmp_path, TRITON_CACHE_MANAGER="other:Manager")[0] == ["False"]


def test_unknown_release_is_not_changed_and_a_warning_says_so(tmp_path):
    distribution(tmp_path, "triton", "4.0.0", {"triton.py": ""})
    program = "import kiln.jit, os; print(kiln.jit.install()['triton'].installed, os.environ.get('TRITON_CACHE_MANAGER'))"
    output, errors = run(program, tmp_path)
    assert output == ["False", "None"]
    assert "triton is not changed: kiln supports 3.9.* and not 4.0.0" in errors


@pytest.mark.parametrize("before", [True, False])
def test_adapter_is_installed_when_the_program_imports_the_system(tmp_path, before):
    distribution(tmp_path, "jax", "0.10.2", JAX)
    steps = ["import jax", "print(kiln.jit.install()['jax'].installed, 'jax' in sys.modules)", "import jax"]
    program = "\n".join(["import kiln.jit, sys", *(steps[:2] if before else steps[1:])])
    program += "\nfrom jax._src import compilation_cache as c\nprint(type(c._cache).__module__, type(jax.__loader__).__name__)"
    assert run(program, tmp_path)[0] == ["True", str(before), "kiln.jax", "SourceFileLoader"]


def test_program_may_look_for_the_system_before_it_imports_it(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", {**JAX, "jax/note.txt": "text"})
    program = """
import kiln.jit, copy, importlib.util, importlib.resources, sys
print(kiln.jit.install()['jax'].installed)
loader = [importlib.util.find_spec('jax').loader for _ in range(2)][-1]
path = loader.get_filename('jax')
print('version' in loader.get_source('jax'), loader.get_code('jax').co_filename == path, b'version' in loader.get_data(path))
print(loader.is_package('jax'), *loader.get_resource_reader('jax').files().joinpath('note.txt').read_text().split())
print(hasattr(loader, 'other'), copy.copy(loader).is_package('jax'), 'jax' in sys.modules)
import jax
from jax._src import compilation_cache as c
print(type(c._cache).__module__, type(jax.__loader__).__name__, type(importlib.util.find_spec('jax').loader).__name__)
"""
    lines = ["True", "True True True", "True text", "False True False", "kiln.jax SourceFileLoader SourceFileLoader"]
    assert run(program, tmp_path)[0] == " ".join(lines).split()


def test_adapter_is_installed_after_an_import_that_failed_first(tmp_path):
    fails_once = "import sys\nif not hasattr(sys, 'tried'):\n    sys.tried = True\n    raise ImportError('not yet')\n"
    distribution(tmp_path, "jax", "0.10.2", {**JAX, "jax/__init__.py": fails_once + JAX["jax/__init__.py"]})
    program = """
import kiln.jit
kiln.jit.install()
try: import jax
except ImportError as error: print(error)
import jax
from jax._src import compilation_cache as c
print(type(c._cache).__module__)
"""
    assert run(program, tmp_path)[0] == ["not", "yet", "kiln.jax"]


def test_other_import_hooks_work_together_with_the_adapter(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", JAX)
    # A hook that asks the other finders, one that asks all finders, and a finder with the interface of Python 3.3.
    program = """
import importlib.util, kiln.jit, sys
class Others:
    def find_spec(self, name, path, target=None):
        specs = (one.find_spec(name, path, target) for one in sys.meta_path if one is not self and hasattr(one, 'find_spec'))
        return next(filter(None, specs), None) if name == 'jax' else None
class All:
    busy = False
    def find_spec(self, name, path, target=None):
        if name != 'jax' or self.busy: return None
        self.busy = True
        try: return importlib.util.find_spec(name)
        finally: self.busy = False
class Old:
    def find_module(self, name, path=None): return None
ORDER
calls, install = [], kiln.jit.importlib.import_module
kiln.jit.importlib.import_module = lambda name: calls.append(name) or install(name)
import jax
from jax._src import compilation_cache as c
print(type(c._cache).__module__, *calls)
"""
    for hook in ("Others()", "All()"):
        add = f"sys.meta_path[:0] = [Old(), {hook}]"
        for order in (f"{add}; kiln.jit.install()", f"kiln.jit.install(); {add}"):
            assert run(program.replace("ORDER", order), tmp_path)[0] == ["kiln.jax", "kiln.jax"]


# The functions of JAX that call a cache, with the names and parameters that the adapter looks at.
CALLS = """
import kiln.jit, types
import jax
from jax._src import compilation_cache, config, distributed
kiln.jit.install(host_code=HOST_CODE)
def get_executable_and_time(backend): return compilation_cache._cache.get("jit_f-1")
def put_executable_and_time(backend): compilation_cache._cache.put("jit_f-1", b"code")
def compile_or_get_cached(platform, host_callbacks=(), store=True):
    backend = types.SimpleNamespace(platform=platform)
    if get_executable_and_time(backend) is not None: return "found"
    waiting.append(bool(compilation_cache._cache._device._pending or compilation_cache._cache._cpu._pending))
    if store: put_executable_and_time(backend)
    return "compiled"
waiting = []
"""


def test_code_for_the_cpu_is_used_only_on_request(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", JAX)
    calls = "print(*(compile_or_get_cached(name) for name in ('cpu', 'cpu', 'cuda', 'cuda')))"
    results = {}
    for name, host_code in (("off", "()"), ("on", "['jax']"), ("off again", "()")):
        program = CALLS.replace("HOST_CODE", host_code) + calls
        results[name] = run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0]
    assert results["off"] == ["compiled", "compiled", "compiled", "found"]
    assert results["on"] == ["compiled", "found", "found", "found"]
    assert results["off again"] == ["compiled", "compiled", "found", "found"]


# JAX's own cache, which the fake keeps in memory: one per directory.
OWN = {
    "jax/_src/config.py": JAX["jax/_src/config.py"] + "class compilation_cache_dir:\n    value = None\n",
    "jax/_src/compilation_cache.py": JAX["jax/_src/compilation_cache.py"]
    + """
opened = []
class File(dict):
    put = dict.__setitem__
def get_file_cache(path):
    opened.append(path)
    if path == "read-only": raise OSError(path)
    return File(), path
""",
}


def test_directory_that_the_program_sets_after_the_import_is_used(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", {**JAX, **OWN})
    program = CALLS.replace("HOST_CODE", "()") + (
        "def both(directory):\n"
        "    config.compilation_cache_dir.value = directory\n"
        "    print(*(compile_or_get_cached('cpu') for _ in range(2)))\n"
        "for directory in (None, 'a', 'b', None, ''): both(directory)\n"
        "print(*compilation_cache.opened)\n"
    )
    lines = ["compiled compiled", "compiled found", "compiled found", "compiled compiled", "compiled compiled", "a b"]
    assert run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0] == " ".join(lines).split()


def test_second_install_keeps_the_cache_of_the_system(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", {**JAX, **OWN})
    program = CALLS.replace("HOST_CODE", "()") + (
        "config.compilation_cache_dir.value = 'a'\n"
        "print(compile_or_get_cached('cpu'))\nkiln.jit.install()\nprint(compile_or_get_cached('cpu'))\n"
        "config.compilation_cache_dir.value = 'b'\nkiln.jit.install()\nprint(compile_or_get_cached('cpu'))\n"
        "print(*compilation_cache.opened)\n"
        "compilation_cache._cache = compilation_cache.File({'jit_f-1': b'own'})\nkiln.jit.install()\n"
        "print(compile_or_get_cached('cpu'), *compilation_cache.opened)\n"
    )
    lines = ["compiled", "found", "compiled", "a b", "found a b"]
    assert run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0] == " ".join(lines).split()


def test_directory_that_cannot_be_used_fails_one_lookup_and_no_device_code(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", {**JAX, **OWN})
    program = CALLS.replace("HOST_CODE", "()") + (
        "config.compilation_cache_dir.value = 'read-only'\n"
        "print(*(compile_or_get_cached('cuda') for _ in range(2)))\n"
        "try: compile_or_get_cached('cpu')\nexcept OSError as error: print(error)\n"  # JAX makes it a warning
        "print(*(compile_or_get_cached('cpu') for _ in range(2)), *compilation_cache.opened)\n"
    )
    lines = ["compiled found", "read-only", "compiled compiled read-only"]
    assert run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0] == " ".join(lines).split()


def test_other_processes_wait_only_for_programs_that_jax_stores(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", JAX)
    program = CALLS.replace("HOST_CODE", "()") + (
        "compile_or_get_cached('cuda', ['callback'], store=False)\n"
        "distributed.global_state.client = 'a client'\ncompile_or_get_cached('cuda', store=False)\n"
        "distributed.global_state.client = None\nconfig._Value.value = 1\ncompile_or_get_cached('cuda', store=False)\n"
        "config._Value.value = 0\ncompile_or_get_cached('cuda')\nprint(*waiting)"
    )
    assert run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0] == ["False", "False", "False", "True"]


def test_nested_compile_keeps_the_claim_of_the_outer_one(tmp_path):
    program = """
import sys, threading
from kiln import _external
keyed = _external.KeyedCache("toy")
removed, claims = [], []
class Cache:  # counts what is removed
    def __init__(self, cache): self._cache = cache
    def __getattr__(self, name): return getattr(self._cache, name)
    def remove(self, key): removed.append(key); return self._cache.remove(key)
_external._caches["toy"] = Cache(_external.cache("toy"))
def is_claimed():
    other = threading.Thread(target=lambda: claims.append(_external.cache("toy")._find_or_claim(b"outer", 0.0)[1]))
    other.start(); other.join()
    return claims.pop() is None
def compile_both():
    call = sys._getframe()
    assert keyed.find(b"outer", 0.0, call) is None
    assert keyed.find(b"inner", 0.0, call) is None
    keyed.store(b"inner", b"code", "inner")
    print(is_claimed())
    keyed.store(b"outer", b"code", "outer")
compile_both()
print(is_claimed(), len(removed), len(keyed._pending))
"""
    # Another lookup finds the entry at the end, which needs no claim either.
    assert run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0] == ["True", "True", "0", "0"]


def test_compile_that_raised_is_forgotten(tmp_path):
    program = """
import sys, time
from kiln import _external
keyed = _external.KeyedCache("toy")
def fail(key): keyed.find(key, 0.0, sys._getframe())
for number in range(5): fail(b"key %d" % number)
until = time.monotonic() + 30
while any(one.is_claimed() for one in keyed._pending.values()) and time.monotonic() < until: time.sleep(0.05)
fail(b"last")
print(len(keyed._pending))
"""
    assert run(program, tmp_path, KILN_CACHE_DIR=str(tmp_path / "kiln"))[0] == ["1"]


def test_missing_interface_leaves_the_system_as_it_is(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", {name: text for name, text in JAX.items() if "interface" not in name})
    program = "import kiln.jit\nkiln.jit.install()\nimport jax\nprint(jax.__version__)"
    output, errors = run(program, tmp_path)
    assert output == ["0.10.2"] and "jax is not changed: No module named" in errors


def test_failing_cache_of_the_system_does_not_fail_its_import(tmp_path):
    name = "jax/_src/compilation_cache.py"
    broken = JAX[name].replace("def reset_cache(): pass", "def reset_cache(): raise OSError('read-only')")
    distribution(tmp_path, "jax", "0.10.2", {**JAX, name: broken})
    output, errors = run("import kiln.jit\nkiln.jit.install()\nimport jax\nprint(jax.__version__)", tmp_path)
    assert output == ["0.10.2"] and "jax is not changed: read-only; jax uses its own cache" in errors
    program = "import kiln.jit, jax\nprint(kiln.jit.install()['jax'].installed)"
    assert run(program, tmp_path)[0] == ["False"]


def test_release_that_the_module_states_counts(tmp_path):
    distribution(tmp_path, "jax", "0.10.2", {**JAX, "jax/__init__.py": "__version__ = '0.11.0'\n"})
    program = "import kiln.jit, jax\nprint(kiln.jit.install()['jax'].installed)"
    assert run(program, tmp_path)[0] == ["False"]


def test_host_code_is_not_shared_through_the_remote_store(tmp_path):
    store, home = tmp_path / "store", tmp_path / "home"
    store.mkdir(mode=0o755)
    home.mkdir()
    key = str(tmp_path / "ci.key")
    generate = [sys.executable, "-m", "kiln", "key", "generate", "-o", key]
    public = subprocess.run(generate, check=True, capture_output=True, text=True, timeout=60).stdout
    policy = tmp_path / "trust.toml"
    public = re.search(r"kiln-public-1:[0-9a-f]+", public).group()
    policy.write_text(f'[[key]]\npublic = "{public}"\nnamespaces = ["acme/vision"]\n')
    remote = {"KILN_REMOTE": str(store), "KILN_TRUST": str(policy), "KILN_REMOTE_NAMESPACE": "acme/vision", "KILN_REMOTE_EPOCH": "1"}
    program = "import os\nfrom kiln import _external\n_external.cache(os.environ['SYSTEM']).put(b'key', b'code ' * 100)"
    stored = {}
    for system in ("jax.cpu", "triton.host", "jax"):
        run(program, home, SYSTEM=system, KILN_CACHE_DIR=str(home / system), KILN_REMOTE_SIGNING_KEY=key, **remote)
        stored[system] = sum(path.is_file() for path in store.rglob("*"))
    assert stored["jax.cpu"] == stored["triton.host"] == 0 and stored["jax"] > 0
    program = "import os\nfrom kiln import _external\nprint(_external.cache(os.environ['SYSTEM']).get(b'key') is not None)"
    for system, found in (("jax.cpu", "False"), ("triton.host", "False"), ("jax", "True")):
        assert run(program, home, SYSTEM=system, KILN_CACHE_DIR=str(tmp_path / "other"), **remote)[0] == [found]


LIBRARY = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", 100) + bytes(10) + struct.pack("<HHH", 64, 2, 1) + bytes(200)
LIST = (
    "import flashinfer_jit_cache as f\nprint(f.__version__)\n"
    "for one in f.get_jit_cache_providers(): print(one.provider_id, *sorted(one.cuda_architectures), *sorted(one.modules))"
)


@pytest.fixture
def workspace(tmp_path):
    """Returns a directory with FlashInfer's metadata and two libraries for sm_90a, one of them built by FlashInfer."""
    distribution(tmp_path, "flashinfer_python", "0.7.2")
    shutil.copytree(PROVIDER / "flashinfer_jit_cache", tmp_path / "flashinfer_jit_cache")
    place = tmp_path / ".cache" / "flashinfer" / "0.7.2" / "90a" / "cached_ops"
    for name in ("filled", "built"):
        (place / name).mkdir(parents=True)
        (place / name / f"{name}.so").write_bytes(LIBRARY)
    (place / "built" / "build.ninja").write_text("")
    return tmp_path, place


def test_provider_serves_nothing_by_default(workspace):
    assert run(LIST, workspace[0])[0] == ["0.7.2+kiln"]


def test_provider_serves_filled_libraries(workspace):
    output, _ = run(LIST, workspace[0], KILN_JIT_HOST_CODE="tilelang, flashinfer")
    assert output == ["0.7.2+kiln", "kiln-90a", "sm90a", "filled"]


@pytest.mark.parametrize("change", ["truncated", "writable", "link", "folder"])
def test_provider_leaves_out_a_library_that_is_not_safe(workspace, change):
    folder, place = workspace
    library = place / "filled" / "filled.so"
    if change == "truncated":
        library.write_bytes(LIBRARY[:150])
    elif change == "writable":
        library.chmod(0o666)
    elif change == "link":
        library.rename(folder / "elsewhere.so")
        library.symlink_to(folder / "elsewhere.so")
    else:
        place.chmod(0o777)
    assert run(LIST, folder, KILN_JIT_HOST_CODE="flashinfer")[0] == ["0.7.2+kiln"]


def test_provider_does_not_serve_an_unknown_release(workspace):
    folder, _ = workspace
    (folder / "flashinfer_python-0.7.2.dist-info").rename(folder / "old")
    distribution(folder, "flashinfer_python", "0.8.0")
    output, errors = run(LIST, folder, KILN_JIT_HOST_CODE="flashinfer")
    assert output == ["0.8.0+kiln"] and "kiln supports 0.7.* and not 0.8.0" in errors
