# SPDX-License-Identifier: Apache-2.0
"""kiln.compute.request_warmup and what cuda.compute then finds: the requirement as a test. NVIDIA's libraries compile,
in kiln's workers; builds are loaded into the driver's double, which checks cubins and runs nothing.

An audit library counts every compile and link of the caller's thread. Numba compiles a Python predicate in each process,
before kiln is asked; its time and its links are counted apart.

KILN_TEST_ALL takes all twelve algorithms of a spatial join and compares all predefined specs (campaign_python_warmup)."""

import collections
import http.server
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.cccl", reason="cuda-cccl is not installed")

HERE = pathlib.Path(__file__).parent
DOUBLE = os.environ.get("KILN_FAKE_DRIVER", "")
COUNTER = os.environ.get("KILN_COMPILE_COUNTER", "")
TOOLKIT = os.environ.get("KILN_TOOLKIT_LIBRARIES", "/usr/local/cuda/lib64")
NUMBA = os.environ.get("KILN_NUMBA", "")
ALL = "KILN_TEST_ALL" in os.environ
LIMIT = 900 if ALL else 600  # seconds of one process

if not os.path.exists(os.path.join(DOUBLE, "libcuda.so.1")):
    pytest.skip("KILN_FAKE_DRIVER names no folder with the driver's double", allow_module_level=True)
if not os.path.exists(COUNTER):
    pytest.skip("KILN_COMPILE_COUNTER names no audit library", allow_module_level=True)
if not os.path.exists(os.path.join(TOOLKIT, "libnvrtc.so.13")):
    pytest.skip(f"{TOOLKIT} has no libnvrtc.so.13, which cuda.compute builds with", allow_module_level=True)


def figure(text):
    print(f"\nfigure: python warm-up: {text}", flush=True)


def has_numba():
    if os.path.isdir(os.path.join(NUMBA, "numba_cuda_mlir")):
        return True
    return importlib.util.find_spec("numba_cuda_mlir") is not None


def cccl_package():
    import cuda.cccl

    return str(pathlib.Path(cuda.cccl.__file__).parents[2])


class Host:
    """A machine as far as kiln knows: a directory of its own, with a cache, a trace and the count of compiles."""

    def __init__(self, folder, **settings):
        self.folder = folder
        folder.mkdir()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        self.environment.update(
            KILN_CACHE_DIR=str(folder / "cache"),
            KILN_CCCL=cccl_package(),
            KILN_NVRTC=os.path.join(TOOLKIT, "libnvrtc.so.13"),
            KILN_DRIVER=os.path.join(DOUBLE, "libcuda.so.1"),
            KILN_FAKE_DRIVER_DEVICES="sm_80",
            KILN_TRACE=str(folder / "trace.json"),
            KILN_TEST_COMPILES=str(folder / "compiles"),
            LD_AUDIT=COUNTER,
            LD_LIBRARY_PATH=f"{DOUBLE}:{TOOLKIT}",
            **settings,
        )
        if not ALL:
            self.environment["KILN_TEST_FEW"] = "1"
        if has_numba():
            self.environment["KILN_TEST_NUMBA"] = "1"
            path = self.environment.get("PYTHONPATH", "")
            self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (path, NUMBA)))

    def run(self, *program):
        """Returns what a program printed."""
        command = [sys.executable, "-B", *program]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kiln(self, *arguments):
        """Returns what the command-line tool printed."""
        return self.run("-m", "kiln", *arguments)

    def calls(self, how, until=lambda: True):
        """Returns how a program that requests and calls algorithms went. It ends when `until` returns true."""
        command = [sys.executable, "-B", str(HERE / "compute_warmup.py"), how]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (self.folder / "errors").open("w+") as errors:
            with subprocess.Popen(command, env=self.environment, stderr=errors, **pipes) as process:
                limit = threading.Timer(LIMIT, process.kill)  # ends the waits below
                limit.daemon = True
                limit.start()
                line = process.stdout.readline()
                while process.poll() is None and not until():
                    threading.Event().wait(0.05)
                process.stdin.close()
                process.wait()
                limit.cancel()
            errors.seek(0)
            assert process.returncode == 0 and line, f"exit code {process.returncode}: {errors.read()}"
        answer = json.loads(line)
        assert answer["failed"] == [], answer
        return answer

    def events(self):
        """Returns how often each event occurred."""
        all_of_it = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        return collections.Counter(event.get("cat") for event in all_of_it)


def show(title, answer):
    times = sorted(answer["calls"].values())
    numba = f", of which numba {sum(answer['numba_ms']):.0f} ms" if answer["numba_ms"] else ""
    figure(
        f"{title}: request {answer['request_ms']:.1f} ms, {len(times)} calls {sum(times):.0f} ms in all{numba}, median "
        f"{times[len(times) // 2]:.1f} ms, compiles and links on the caller's path {answer['compiles']}"
    )
    if ALL:
        print(json.dumps(answer["calls"]))


class Server(http.server.ThreadingHTTPServer):
    """A store that hosts share: an object under each name."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Objects)
        self.objects = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def statements(self):
        return sum(1 for name in self.objects if name.startswith("/ac/"))


class Objects(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        body = self.server.objects.get(self.path)
        self.answer(404 if body is None else 200, body or b"")

    do_HEAD = do_GET

    def do_PUT(self):
        self.server.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A first host that compiles and publishes what it compiled, and the settings of a host that reads it."""
    folder = tmp_path_factory.mktemp("fleet")
    server = Server()
    first = Host(folder / "first")
    public = re.search(r"kiln-public-1:[0-9a-f]+", first.kiln("key", "generate", "-o", str(folder / "ci.key"))).group()
    policy = folder / "trust.toml"
    policy.write_text(f'[[key]]\npublic = "{public}"\nnamespaces = ["acme/vision"]\n')
    reads = {
        "KILN_REMOTE": f"http://127.0.0.1:{server.server_port}",
        "KILN_REMOTE_BUDGET": "60000",
        "KILN_TRUST": str(policy),
    }
    first.environment.update(
        reads,
        KILN_REMOTE_SIGNING_KEY=str(folder / "ci.key"),
        KILN_REMOTE_NAMESPACE="acme/vision",
        KILN_REMOTE_EPOCH="1",
    )
    yield first, reads, server
    server.shutdown()


@pytest.fixture(scope="module")
def cold(fleet):
    """The first host's first program, which finds nothing and has something else to do until all is compiled."""
    first, _, server = fleet
    needed = 4 if not ALL else 10
    answer = first.calls("wait", until=lambda: server.statements() >= needed - (0 if has_numba() or ALL else 1))
    show(f"cold, ready {answer['ready_ms'] / 1e3:.1f} s after the request", answer)
    return answer


def test_request_returns_at_once_and_calls_find_everything_compiled(cold, fleet):
    assert cold["compiles"] == 0, cold
    assert cold["compiled"] == len(cold["calls"]) - len(cold["numba_ms"])
    assert cold["request_ms"] < cold["ready_ms"]  # it did not wait for the compiles
    events = fleet[0].events()
    # The functions of the background thread found nothing; all calls did.
    assert (events["build_served"], events["build_missed"]) == (len(cold["calls"]), len(cold["numba_ms"]))
    if not has_numba():
        figure("no select: numba-cuda-mlir is not installed (tools/setup.sh), and its predicates need it")


def test_second_process_compiles_nothing(cold, fleet):
    answer = fleet[0].calls("now")
    show("second process", answer)
    assert (answer["compiles"], answer["compiled"]) == (0, 0), answer


def test_bundle_serves_a_host_that_may_not_compile(cold, fleet, tmp_path):
    manifest = tmp_path / "kiln.toml"
    units = "".join(f'[[cccl]]\nspec = "{name}"\n' for name in cold["calls"] if not name.startswith("select"))
    manifest.write_text(f'namespace = "acme/vision"\narchitectures = ["sm_80"]\n{units}')
    first = fleet[0]
    first.kiln("bundle", "create", str(manifest), "-o", str(tmp_path / "units.kiln"))
    bundles = [tmp_path / "units.kiln"]
    if has_numba():
        bundles.append(tmp_path / "builds.kiln")
        first.kiln("bundle", "create", "--external", "cuda.compute", "-o", str(bundles[1]))
    paths = ":".join(str(path) for path in bundles)
    host = Host(tmp_path / "host", KILN_BUNDLES=paths, KILN_TRUST_UNSIGNED="true", KILN_COMPILE="never")
    answer = host.calls("now")
    show("from a bundle", answer)
    assert (answer["compiles"], answer["compiled"]) == (0, 0), answer


def test_fleet_serves_a_host_that_may_not_compile(cold, fleet, tmp_path):
    host = Host(tmp_path / "host", KILN_COMPILE="never", **fleet[1])
    answer = host.calls("now")
    show("from a fleet's server", answer)
    assert (answer["compiles"], answer["compiled"]) == (0, 0), answer


def test_command_line_and_cuda_compute_share_one_compile_and_one_key(tmp_path):
    host = Host(tmp_path / "host")
    compiled = json.loads(host.kiln("compile", "--cccl", "reduce_sum_i32", "--arch", "sm_80", "--json"))
    program = """
import compute_algorithms, kiln.compute
kiln.compute.install()
compute_algorithms.make("reduce_sum_i32", compute_capability=80)
status = kiln.status()
print(status.compiled, status.cached)
kiln.shared.write_trace()
"""
    host.environment["PYTHONPATH"] += os.pathsep + str(HERE)
    assert host.run("-c", program).split() == ["0", "1"]
    assert host.events()["build_served"] == 1
    again = json.loads(host.kiln("compile", "--cccl", "reduce_sum_i32", "--arch", "sm_80", "--json"))
    keys = {result["key"] for answer in (compiled, again) for result in answer["results"]}
    entries = json.loads(host.kiln("cache", "ls", "--json"))["entries"]
    assert len(keys) == 1 and [entry["key"] for entry in entries] == list(keys)
    figure(f"reduce_sum_i32 from the command line and from cuda.compute: 1 compile, 1 key ({next(iter(keys))[:12]})")


def test_bundle_of_another_release_is_compiled_again(tmp_path):
    """The bundle has the artifact of this library; the test rejects it as if another one had built it."""
    manifest, bundle = tmp_path / "kiln.toml", tmp_path / "other.kiln"
    manifest.write_text('architectures = ["sm_80"]\n[[cccl]]\nspec = "reduce_sum_i32"\n')
    Host(tmp_path / "other").kiln("bundle", "create", str(manifest), "-o", str(bundle))
    host = Host(tmp_path / "host", KILN_BUNDLES=str(bundle), KILN_TRUST_UNSIGNED="true")
    program = """
import compute_algorithms, kiln.compute
checked, check = [], kiln.compute._serialized_build
def rejects_first(artifact, unit, library):
    checked.append(unit.label)
    if len(checked) == 1:
        raise kiln.LoadRejected("another library built it", code="load_rejected")
    return check(artifact, unit, library)
kiln.compute._serialized_build = rejects_first
kiln.compute.install()
compute_algorithms.make("reduce_sum_i32", compute_capability=80)
kiln.shared.write_trace()
print(*checked)
"""
    host.environment["PYTHONPATH"] += os.pathsep + str(HERE)
    assert host.run("-c", program).split() == ["reduce_i32"] * 2
    events = host.events()
    assert (events["build_served"], events["build_missed"], events["compiled"]) == (1, 0, 1), events


def test_mapped_builds_have_the_code_of_their_specs(cold, fleet):
    names = ["exclusive_scan_i32", "lower_bound_i32"]
    host = fleet[0]
    if ALL:
        names = predefined_names(host)
    answers = json.loads(host.run(str(HERE / "compute_identity.py"), "sm_80", *names).splitlines()[-1])
    assert answers == {name: "" for name in names}
    mapped = [name for name in names if not name.startswith("select")]
    figure(f"{len(mapped)} specs: cuda.compute and kiln build equal sections of code, and read each other's")


def predefined_names(host):
    """Returns the predefined names: the message about an unknown one lists them."""
    program = "import kiln\ntry: kiln.Unit.cccl('?')\nexcept ValueError as error: print(str(error).split('use one of ')[1])"
    names = host.run("-c", program).strip().split(", ")
    assert len(names) == 18
    return [name for name in names if has_numba() or not name.startswith("select")]
