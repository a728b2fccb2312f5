# SPDX-License-Identifier: Apache-2.0
"""The operations under test. Each is one real process (or one with a worker, or two) in a separate directory."""
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess

# Small, with a header, so that the dependency set is not empty.
SOURCE = '#include <k.h>\nextern "C" __global__ void k(int* p) { *p = K; }\n'
MANIFEST = """namespace = "acme"
epoch = 1
architectures = ["sm_80"]
[[unit]]
source = "k.cu"
include = ["include"]
entries = ["k"]
[[unit]]
source = "l.cu"
entries = ["l"]
"""
COMPILE = ["{kiln}", "compile", "k.cu", "--arch", "sm_80", "-I", "include", "-e", "k"]
INTO_FILE = [*COMPILE, "-o", "{work}/k.cubin"]
INTO_PIPE = [*COMPILE, "-o", "-"]


@dataclasses.dataclass
class Programs:
    kiln: pathlib.Path
    steps: pathlib.Path
    inject: pathlib.Path


@dataclasses.dataclass
class Operation:
    name: str
    about: str
    command: list
    prepare: object                      # creates the initial state of the directory
    settings: dict = dataclasses.field(default_factory=dict)
    answers: tuple = ()                  # allowed output if it returns 0; empty: anything
    output: str = ""                     # file that it writes, or "-" for standard output; must be right or missing
    codes: tuple = (0, 1, 2, 3, 4)       # docs/reference/errors.md
    then: list = None                    # command that runs after it, without faults; None: the same command again
    then_settings: dict = None
    then_answers: tuple = ()
    then_output: str = None
    then_codes: tuple = (0,)
    check: object = None                 # checks the directory at the end; returns a problem, or nothing
    processes: tuple = (0,)              # processes whose calls fail; 1 is the worker
    every: dict = dataclasses.field(default_factory=dict)
    errors_at_most: int = 7
    real_compile: bool = False           # each fault costs a compile by NVRTC
    in_sample: bool = True


class Folder:
    """The directory of one operation: a cache, a runtime directory, a home and a project, all separate from the user's."""

    def __init__(self, root, programs):
        self.root = pathlib.Path(root)
        self.programs = programs

    def path(self, *names):
        return self.root.joinpath(*names)

    def make(self):
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("cache", "run", "home", "work/include", "shared"):
            self.path(name).mkdir(parents=True, mode=0o700)
        self.path("work/k.cu").write_text(SOURCE)
        self.path("work/include/k.h").write_text("#define K 7\n")
        self.path("work/l.cu").write_text('extern "C" __global__ void l(int* p) { *p = 8; }\n')
        self.path("work/kiln.toml").write_text(MANIFEST)

    def copy_of(self, template):
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(template.root, self.root, symlinks=True)

    def after(self, step):
        """Starts with the result of another step, which runs only once: a step with a real compile takes a quarter of a second."""
        base = Folder(self.root.parent / f"after_{step.__name__}", self.programs)
        if not base.root.exists():
            step(base)
        self.copy_of(base)

    def words(self, command):
        places = dict(kiln=self.programs.kiln, steps=self.programs.steps, work=self.path("work"), cache=self.path("cache"),
                      shared=self.path("shared"), root=self.root)
        return [word.format(**places) for word in command]

    def environment(self, settings):
        kept = {name: os.environ[name] for name in ("PATH", "CUDA_HOME", "LD_LIBRARY_PATH") if name in os.environ}
        ours = {"HOME": "{root}/home", "XDG_RUNTIME_DIR": "{root}/run", "KILN_CACHE_DIR": "{cache}", "KILN_PCH": "off",
                "KILN_JOBS": "1", "LC_ALL": "C", "TMPDIR": "{root}/run"}
        ours.update(settings)
        return kept | dict(zip(ours, self.words(ours.values())))

    def run(self, command, settings, limit=60, before=()):
        return subprocess.run([*before, *self.words(command)], cwd=self.path("work"), env=self.environment(settings),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)

    def must(self, command, settings=None):
        ran = self.run(command, settings or {})
        if ran.returncode != 0:
            raise RuntimeError(f"{self.words(command)} returned {ran.returncode}: {ran.stderr.decode(errors='replace')}")
        return ran

    def files(self):
        """Returns every file that kiln may have created."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}

    def entries(self):
        return sorted(path for path in self.path("cache/v1/entries").rglob("*") if path.is_file())


def digest_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() if os.path.exists(path) else None


def damage(path):
    """Corrupts one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


# Initial states of operations.

def empty(folder):
    folder.make()


def stored(folder):
    folder.make()
    folder.must(["{steps}", "put", "{cache}"])


def stored_and_damaged(folder):
    stored(folder)
    damage(folder.entries()[0])


def many_stored(folder):
    stored(folder)
    folder.must(["{steps}", "grow", "{cache}"])


def many_and_damaged(folder):
    many_stored(folder)
    damage(folder.entries()[0])


def known_compiler(folder):
    """An empty cache on a host that has cached the digest of NVRTC: reading that library takes longer than everything else."""
    folder.make()
    folder.must(["{kiln}", "compile", "l.cu", "--arch", "sm_80"])
    folder.must(["{kiln}", "cache", "clear", "--yes"])


def compiled(folder):
    folder.after(known_compiler)
    folder.must(COMPILE)


def all_compiled(folder):
    folder.after(compiled)
    folder.must(["{kiln}", "compile", "--manifest", "kiln.toml"])


def without_cache(folder):
    folder.after(known_compiler)
    folder.path("work/file").write_text("not a directory")


def bundled(folder):
    folder.after(all_compiled)
    folder.must(["{kiln}", "bundle", "create", "kiln.toml", "-o", "{root}/app.kiln"])
    folder.must(["{kiln}", "cache", "clear", "--yes"])


def bundle_damaged(folder):
    folder.after(bundled)
    damage(folder.path("app.kiln"))


def keyed(folder):
    folder.make()
    folder.must(["{kiln}", "key", "generate", "-o", "{root}/key"])


def shared(folder):
    keyed(folder)
    folder.must(["{steps}", "share", "{shared}", "{root}/key"])


def published(folder):
    """The shared directory contains the artifacts of the host `ci`; this host has nothing."""
    folder.after(known_compiler)
    public = folder.must(["{kiln}", "key", "generate", "-o", "{root}/key"]).stdout.decode()
    public = next(word for word in public.split() if word.startswith("kiln-public-1:"))
    folder.path("trust.toml").write_text(f'[[key]]\npublic = "{public}"\nnamespaces = ["acme"]\n')
    signer = {"KILN_REMOTE_SIGNING_KEY": "{root}/key", "KILN_REMOTE_NAMESPACE": "acme", "KILN_CACHE_DIR": "{root}/ci"}
    folder.must(["{kiln}", "warm", "--from", "kiln.toml"], REMOTE | signer)
    shutil.rmtree(folder.path("ci"))


REMOTE = {"KILN_REMOTE": "{shared}", "KILN_TRUST": "{root}/trust.toml"}
BUNDLE = {"KILN_BUNDLES": "{root}/app.kiln", "KILN_TRUST_UNSIGNED": "1", "KILN_COMPILE": "never"}


# Final states to check.

def within_bound(folder):
    size = sum(path.stat().st_size for path in folder.path("cache/v1").rglob("*") if path.is_file())
    return f"the cache has {size} bytes, its bound is 70000" if size > 70_000 else None


OPERATIONS = [
    Operation("store_put", "an entry and a hint into an empty cache", ["{steps}", "put", "{cache}"], empty, answers=("done",),
              then=["sh", "-c", "{steps} put {cache} && {steps} get {cache}"], then_answers=("done right",)),
    Operation("store_put_again", "the same if both exist", ["{steps}", "put", "{cache}"], stored, answers=("done",),
              then=["{steps}", "get", "{cache}"], then_answers=("right",), in_sample=False),
    Operation("store_get", "a hint and an entry", ["{steps}", "get", "{cache}"], stored, answers=("right", "absent"),
              then_answers=("right",)),
    Operation("store_get_damaged", "an entry with one changed byte", ["{steps}", "get", "{cache}"], stored_and_damaged,
              answers=("absent",), then=["sh", "-c", "{steps} put {cache} && {steps} get {cache}"], then_answers=("done right",)),
    Operation("store_evict", "four entries into a cache for three", ["{steps}", "grow", "{cache}"], stored, answers=("done",),
              then_answers=("done",), check=within_bound, errors_at_most=3),
    Operation("store_remove", "an entry", ["{steps}", "remove", "{cache}"], stored, answers=("done", "absent"),
              then=["sh", "-c", "{steps} put {cache} && {steps} get {cache}"], then_answers=("done right",)),
    Operation("cache_gc", "kiln cache gc to half of the size", ["{kiln}", "cache", "gc", "--max-size", "40K"], many_stored),
    Operation("cache_verify", "kiln cache verify of intact entries", ["{kiln}", "cache", "verify"], many_stored, then_codes=(0, 1),
              in_sample=False),
    Operation("cache_verify_damaged", "the same with a corrupt entry, which it must report", ["{kiln}", "cache", "verify"],
              many_and_damaged, codes=(1, 2, 3, 4), then=["sh", "-c", "{kiln} cache verify; {kiln} cache verify"]),
    Operation("session_warm", "kiln compile of a cached unit", INTO_FILE, compiled, output="k.cubin"),
    Operation("session_pipe", "the same, to standard output", INTO_PIPE, compiled, output="-", in_sample=False),
    Operation("session_cold", "kiln compile of a small unit by a worker with NVRTC, the program's calls", INTO_FILE, known_compiler,
              output="k.cubin", every={0: 2}, errors_at_most=2, real_compile=True),
    Operation("worker", "the same, the worker's calls", INTO_FILE, known_compiler, output="k.cubin", processes=(1,), every={1: 3},
              errors_at_most=2, real_compile=True),
    Operation("session_unwritable", "the same if no cache can be created", INTO_FILE, without_cache, output="k.cubin",
              settings={"KILN_CACHE_DIR": "{work}/file/cache"}, every={0: 3}, errors_at_most=2, real_compile=True),
    Operation("bundle_create", "kiln bundle create of cached units",
              ["{kiln}", "bundle", "create", "kiln.toml", "-o", "{work}/new.kiln"], all_compiled, output="new.kiln"),
    Operation("bundle_get", "kiln compile from a bundle under KILN_COMPILE=never", INTO_PIPE, bundled, settings=BUNDLE, output="-"),
    Operation("bundle_verify", "kiln bundle verify", ["{kiln}", "bundle", "verify", "{root}/app.kiln"], bundled,
              settings={"KILN_TRUST_UNSIGNED": "1"}, in_sample=False),
    Operation("bundle_verify_damaged", "the same with a changed byte, which it must report",
              ["{kiln}", "bundle", "verify", "{root}/app.kiln"], bundle_damaged, settings={"KILN_TRUST_UNSIGNED": "1"},
              codes=(1, 2, 3, 4), then_codes=(1,)),
    Operation("directory_put", "an entry and a hint into a shared directory", ["{steps}", "share", "{shared}", "{root}/key"], keyed,
              answers=("done",), then=["sh", "-c", "{steps} share {shared} {root}/key && {steps} fetch {shared} {root}/key"],
              then_answers=("done right",)),
    Operation("directory_get", "both from a shared directory", ["{steps}", "fetch", "{shared}", "{root}/key"], shared,
              answers=("right", "absent"), then_answers=("right",), in_sample=False),
    Operation("session_remote", "kiln compile from a shared directory under KILN_COMPILE=never", INTO_PIPE, published,
              settings=REMOTE | {"KILN_COMPILE": "never"}, output="-", errors_at_most=4, in_sample=False),
    Operation("claims", "two processes compile the same unit", ["{steps}", "claims", "{cache}"], empty, processes=(0, 1),
              answers=("done", "done done"), then=["{steps}", "claim", "{cache}"], then_answers=("done",)),
]
