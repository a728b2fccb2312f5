# SPDX-License-Identifier: Apache-2.0
"""Type stubs of the extension. The docstrings are those of the extension: tools/update_stubs writes them."""

import builtins
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, SupportsIndex, TypeVar, overload

from numpy.typing import DTypeLike, NDArray
from typing_extensions import Buffer as HostBuffer
from typing_extensions import Self

from cuda.core import ObjectCode

__version__: str
default_stream: int
per_thread_stream: int

class _CudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...

class _DLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

_Path = str | os.PathLike[str]
_Host = HostBuffer | _DLPack
_Filled = TypeVar("_Filled", bound=_Host)
_StreamLike = int | Stream | _CudaStream | None
_Sizes = SupportsIndex | Iterable[SupportsIndex]
_Roots = _Path | Iterable[_Path | tuple[_Path, _Path]]
_Units = Unit | Iterable[Unit]
_Backend = Literal["cuda", "opencl"]
_Mode = Literal["auto", "cpu", "gpu"]
_PrecisionPolicy = Literal["auto", "fp64"]
_MemoryTier = Literal["pool", "retrying_pool", "managed", "plain"]
_RowsOn = Literal["host", "device"]

class Unit:
    """One program for one compiler, with its options and the kernels to export. Immutable."""
    @staticmethod
    def cuda(
        name: str,
        source: str,
        *,
        entries: str | Iterable[str] = (),
        options: str | Iterable[str] = (),
        include_roots: _Roots = (),
        headers: Mapping[str, str] | None = None,
        preamble: str = "",
        served_by: str | Iterable[str] = (),
    ) -> Unit:
        """Creates a CUDA C++ unit for NVRTC. An entry is a name, or a name expression such as scale<float>."""
    @staticmethod
    def opencl(
        name: str,
        source: str,
        *,
        entries: str | Iterable[str] = (),
        options: str | Iterable[str] = (),
        include_roots: _Roots = (),
        headers: Mapping[str, str] | None = None,
        preamble: str = "",
        served_by: str | Iterable[str] = (),
    ) -> Unit:
        """Creates an OpenCL C unit for the device's own compiler."""
    @staticmethod
    def from_file(
        path: _Path,
        *,
        entries: str | Iterable[str] = (),
        options: str | Iterable[str] = (),
        include_roots: _Roots = (),
        headers: Mapping[str, str] | None = None,
        preamble: str = "",
        served_by: str | Iterable[str] = (),
        name: str = "",
        kind: Literal["cuda", "opencl"] | None = None,
    ) -> Unit:
        """Reads a source file: OpenCL C if it ends in .cl, otherwise CUDA C++, unless `kind` says it. The name is the
        file's own, without folders. A CUDA source with a quoted #include gets its folder as the first include root.
        `kiln compile` and a kiln.toml make an equal unit of the file.
        """
    @staticmethod
    def command(
        name: str,
        source: str,
        arguments: Iterable[str] | None = None,
        *,
        entries: str | Iterable[str] = (),
        options: str | Iterable[str] = (),
        include_roots: _Roots = (),
        served_by: str | Iterable[str] = (),
    ) -> Unit:
        """Creates a unit for a compiler that is a program. `arguments` is its command line; default: nvcc."""
    @staticmethod
    def link(
        name: str,
        parts: Iterable[Unit | LinkPart],
        *,
        entries: str | Iterable[str] = (),
        options: str | Iterable[str] = (),
        served_by: str | Iterable[str] = (),
    ) -> Unit:
        """Creates a unit that nvJitLink links from several compiled parts."""
    @staticmethod
    def cccl(spec: str) -> Unit:
        """Creates a unit for a CCCL algorithm: the name of a predefined spec, or the text of a spec."""
    @property
    def kind(self) -> str:
        """'cuda', 'opencl', 'command', 'link' or 'cccl'."""
    @property
    def name(self) -> str:
        """Name of the unit."""
    @property
    def label(self) -> str:
        """Name for displays: the name, and the entry if the unit shares a preamble with others."""
    @property
    def source(self) -> str:
        """The source, with the preamble."""
    @property
    def entries(self) -> list[str]:
        """The kernels to export."""
    @property
    def options(self) -> list[str]:
        """Options for the compiler."""
    @property
    def served_by(self) -> list[str]:
        """Namespaces that may serve it; empty means any."""
    @property
    def key(self) -> str:
        """Key of the unit, in hexadecimal."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

def _read_unit(bytes: bytes, served_by: list[str]) -> Unit: ...
def use_bundle(path: _Path) -> None:
    """Names a bundle that is installed with this program. Every session of the process asks it before any cache."""
def read_manifest(path: _Path) -> dict[str, Unit]:
    """Returns the units of a kiln.toml by name (a kernel of a family: `family:entry`), equal to those in a bundle of
    it.
    """

class LinkPart:
    """One part of a linked unit: compiled bytes, or a unit."""
    @staticmethod
    def ltoir(name: str, bytes: bytes) -> LinkPart:
        """Creates a part from LTO-IR."""
    @staticmethod
    def ptx(name: str, bytes: bytes) -> LinkPart:
        """Creates a part from PTX."""
    @staticmethod
    def cubin(name: str, bytes: bytes) -> LinkPart:
        """Creates a part from a cubin."""
    @staticmethod
    def unit(unit: Unit) -> LinkPart:
        """Creates a part from a unit, which is compiled first."""
    @property
    def name(self) -> str:
        """Name of the part."""

class Target:
    """The target of a compile: sm_90, compute_90, lto_90, or an OpenCL device."""
    def __init__(self, text: str, /) -> None: ...
    @staticmethod
    def opencl(device: str) -> Target:
        """Returns the target of an OpenCL device by its name."""
    @property
    def name(self) -> str:
        """The name, for example 'sm_90'."""
    @property
    def form(self) -> str:
        """Form of the code: 'cubin', 'ptx', 'ltoir', 'opencl' or 'cccl'."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class CcclInfo:
    """The description of a CCCL artifact."""
    @property
    def spec(self) -> str:
        """The spec as JSON."""
    @property
    def release(self) -> str:
        """Release of cuda-cccl that compiled it."""
    @property
    def capability(self) -> int:
        """Compute capability, for example 90."""
    @property
    def policy_bytes(self) -> int:
        """Size of the runtime policy."""
    @property
    def kernels(self) -> list[str]:
        """Lowered names of the kernels."""

class Artifact:
    """The result of a compile: the code for a target, and the names in it."""
    @property
    def bytes(self) -> bytes:
        """The code."""
    @property
    def target(self) -> Target:
        """The target that it is for."""
    @property
    def form(self) -> str:
        """Form of the code: 'cubin', 'ptx', 'ltoir', 'opencl' or 'cccl'."""
    @property
    def symbols(self) -> dict[str, str]:
        """The symbol of each entry, by its name in the source."""
    @property
    def cccl(self) -> CcclInfo | None:
        """The description of a CCCL algorithm; None for other artifacts."""
    @property
    def library_bytes(self) -> builtins.bytes:
        """The serialized form of the CCCL library itself."""
    @property
    def unit(self) -> str:
        """Name of the unit."""
    @property
    def compiler(self) -> str:
        """Name and version of the compiler."""
    @property
    def cost_ms(self) -> float:
        """Time of the compile in milliseconds."""
    @property
    def log(self) -> str:
        """Output of the compiler."""
    def __len__(self) -> int: ...
    def to_object_code(self) -> ObjectCode:
        """Returns the code as a `cuda.core.ObjectCode`, not loaded yet, with the names of its kernels."""

def cuda_compute_bytes(artifacts: Iterable[Artifact]) -> bytes:
    """The artifacts of one CCCL spec in the form that cuda.compute.deserialize reads."""
def _serialized_build(artifact: Artifact, unit: Unit, library: str) -> bytes: ...

class UnitStatus:
    """The status of one unit for one target."""
    @property
    def unit(self) -> str:
        """Name of the unit."""
    @property
    def kind(self) -> str:
        """Kind of the unit: 'cuda', 'opencl', 'command', 'link' or 'cccl'."""
    @property
    def target(self) -> str:
        """Name of the target."""
    @property
    def state(self) -> Literal["queued", "running", "ready", "failed", "cancelled"]:
        """'queued', 'running', 'ready', 'failed' or 'cancelled'."""
    @property
    def origin(self) -> Literal["compiled", "memory", "bundle", "disk", "remote"] | None:
        """Tier that had it, or 'compiled'; None if it is not ready."""
    @property
    def ms(self) -> float:
        """Time of the work in milliseconds."""
    @property
    def error(self) -> str:
        """Why it failed; empty otherwise."""

class Status:
    """A snapshot of the units of a session, and their counts."""
    @property
    def submitted(self) -> int:
        """Number of units in the list."""
    @property
    def compiled(self) -> int:
        """Number of units that were compiled."""
    @property
    def cached(self) -> int:
        """Number of units that a tier had."""
    @property
    def pending(self) -> int:
        """Number of units that are queued or running."""
    @property
    def failed(self) -> int:
        """Number of units that failed."""
    @property
    def cancelled(self) -> int:
        """Number of units whose request was canceled."""
    @property
    def wall_ms(self) -> float:
        """Milliseconds from the first request to the end of the last work, or until now."""
    @property
    def units(self) -> list[UnitStatus]:
        """Status of each unit."""
    @property
    def released(self) -> int:
        """Number of units that were released."""
    def _repr_html_(self) -> str:
        """The units as a table, for notebooks."""

class DeviceInfo:
    """A device of this machine."""
    @property
    def name(self) -> str:
        """Name of the device."""
    @property
    def target(self) -> Target:
        """Target to compile for."""
    @property
    def units(self) -> int:
        """Number of multiprocessors or compute units."""
    @property
    def memory(self) -> int:
        """Memory in bytes."""
    @property
    def fp64_ratio(self) -> int:
        """Ratio of single-precision to double-precision throughput; 0 if unknown."""
    @property
    def is_cpu(self) -> bool:
        """True if the device is a CPU, as with PoCL."""

class NotReady:
    """A unit that is not ready, and the reason."""
    @property
    def unit(self) -> str:
        """Name of the unit."""
    @property
    def target(self) -> str:
        """Name of the target."""
    @property
    def reason(self) -> str:
        """Why it is not ready."""

class UndeclaredUse:
    """A use of a unit that was not requested before."""
    @property
    def unit(self) -> str:
        """Name of the unit."""
    @property
    def entry(self) -> str:
        """Entry that was used; empty for the whole unit."""
    @property
    def caller(self) -> str:
        """Place of the call, as file:line."""

class Occupancy:
    """A launch size that keeps the device fully occupied."""
    @property
    def block_size(self) -> int:
        """Threads per block."""
    @property
    def min_grid_size(self) -> int:
        """Minimum number of blocks that uses the whole device."""

class Event:
    """A decision of kiln or something that happened to it."""
    @property
    def kind(self) -> str:
        """Name of the event, for example 'hit'."""
    @property
    def category(self) -> str:
        """Library that defines the event; empty for kiln's own."""
    @property
    def unit(self) -> str:
        """Name of the unit, if the event concerns one."""
    @property
    def target(self) -> str:
        """Name of the target, if the event concerns one."""
    @property
    def key(self) -> str:
        """Hexadecimal key, if known."""
    @property
    def origin(self) -> str:
        """Tier: 'memory', 'bundle', 'disk', 'remote' or 'compiled'."""
    @property
    def message(self) -> str:
        """Reason for a reader."""
    @property
    def ms(self) -> float:
        """Duration in milliseconds, if applicable."""
    @property
    def bytes(self) -> int:
        """Size of a copy or an allocation."""
    @property
    def stream(self) -> int:
        """Native stream or queue; 0 means none or the default stream."""
    @property
    def task_id(self) -> int:
        """Number of the compile task in this process; 0 if unknown."""
    @property
    def requested(self) -> str:
        """For a decision: what was requested."""
    @property
    def selected(self) -> str:
        """For a decision: the result; for a rejection or a wait: its outcome."""
    @property
    def warm(self) -> bool | None:
        """For a decision or a dispatch: whether its code was ready; otherwise None."""
    @property
    def operation(self) -> str:
        """The program's operation that the thread was in."""
    @property
    def stage(self) -> str:
        """Stage of that operation."""
    @property
    def dispatch(self) -> int:
        """Number of the run of that operation."""
    @property
    def workflow(self) -> int:
        """Number of the workflow; 0 means none."""
    @property
    def rows(self) -> int:
        """Number of rows of the operation."""
    @property
    def residency(self) -> str:
        """Where the rows are: 'unknown', 'host' or 'device'."""
    @property
    def purpose(self) -> str:
        """Declared purpose of a copy or a wait."""
    @property
    def grid_blocks(self) -> int:
        """For a launch: number of blocks."""
    @property
    def block_threads(self) -> int:
        """For a launch: threads per block."""
    @property
    def suggested_block_threads(self) -> int:
        """For a launch: block size that the driver suggests; 0 if unknown."""
    @property
    def shared_bytes(self) -> int:
        """For a launch: shared memory per block in bytes."""
    @property
    def pinned(self) -> bool | None:
        """For a copy: whether the host memory is page-locked; None if unknown."""
    @property
    def cpu_device(self) -> bool:
        """True if the device is a CPU."""
    @property
    def details(self) -> dict[str, str]:
        """Further fields of an event of another library."""

class Buffer:
    """Device memory that is freed in stream order."""
    @property
    def handle(self) -> int:
        """CUdeviceptr or cl_mem, as a number."""
    @property
    def size(self) -> int:
        """Size in bytes."""
    @property
    def dtype(self) -> str:
        """Type of the elements as numpy's type string, for example '<f4'; '|u1' for bytes."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements in each dimension."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def close(self) -> None:
        """Frees the memory now."""
    def __len__(self) -> int: ...

class LocalMemory:
    """A kernel argument that reserves OpenCL local memory."""
    def __init__(self, bytes: int) -> None: ...
    @property
    def bytes(self) -> int:
        """Size for each work group."""

class Stream:
    """A stream that also allocates memory, for programs that have neither."""
    @property
    def handle(self) -> int:
        """CUstream or cl_command_queue, as a number."""
    @property
    def backend(self) -> _Backend:
        """'cuda' or 'opencl'."""
    def __cuda_stream__(self) -> tuple[int, int]: ...
    def allocate(self, size: _Sizes, dtype: DTypeLike | None = None) -> Buffer:
        """Allocates device memory: `size` bytes, or an array of the shape `size` with elements of numpy's `dtype`."""
    def copy_of(self, data: _Host) -> Buffer:
        """Allocates device memory and copies `data` (a numpy array, or what has the buffer protocol or DLPack) into it.
        The buffer has the type and the shape of the array.
        """
    def upload(self, to: Buffer, data: _Host) -> None:
        """Copies `data` to the beginning of a buffer."""
    @overload
    def download(self, buffer: Buffer, to: _Filled) -> _Filled:
        """Fills `to`, or a new bytearray, and returns it."""
    @overload
    def download(self, buffer: Buffer, to: None = None) -> bytearray:
        """Fills `to`, or a new bytearray, and returns it."""
    def to_numpy(self, buffer: Buffer) -> NDArray[Any]:
        """Returns a new numpy array with the type, the shape and the content of a buffer."""
    def synchronize(self) -> None:
        """Waits until all work on the stream is complete."""

class KernelParameter:
    """A parameter of a kernel, as far as the compiler and the driver report it."""
    @property
    def name(self) -> str:
        """Name in the source; empty if it is not reported."""
    @property
    def type(self) -> str:
        """Type as in the source; empty if it is not reported."""
    @property
    def kind(self) -> Literal["integer", "float", "pointer", "local_memory", "unknown"]:
        """'integer', 'float', 'pointer', 'local_memory' or 'unknown'."""
    @property
    def size(self) -> int:
        """Size in bytes; 0 if it is not reported."""

class Kernel:
    """A kernel that can be launched. It keeps its session alive."""
    def launch(
        self,
        *args: Any,
        grid: _Sizes,
        block: _Sizes,
        stream: int | Stream | _CudaStream,
        shared_bytes: int = 0,
        cluster: _Sizes | None = None,
        cooperative: bool = False,
        programmatic: bool = False,
        priority: int = 0,
    ) -> None:
        """Launches the kernel on the stream without waiting for it. Raises TypeError for an argument that does not
        match its parameter.
        """
    @property
    def name(self) -> str:
        """Name of the entry."""
    @property
    def unit(self) -> Unit:
        """The unit that contains it."""
    @property
    def target(self) -> Target:
        """Target of the device that it is compiled for."""
    @property
    def handle(self) -> int:
        """CUkernel or cl_kernel, as a number."""
    @property
    def function(self) -> int:
        """CUfunction in the current context, or cl_kernel, as a number."""
    @property
    def parameters(self) -> list[KernelParameter]:
        """The parameters as far as the compiler and the driver report them; launches are checked against them."""
    @property
    def parameter_sizes(self) -> list[int]:
        """Size in bytes of each parameter; empty if one of them is not reported."""
    def occupancy(self, shared_bytes: int = 0) -> Occupancy:
        """Returns the block size and the grid size that the driver suggests for this much dynamic shared memory."""
    @property
    def artifact(self) -> Artifact:
        """The compiled code of the unit."""
    @property
    def binary(self) -> bytes:
        """The bytes of the compiled code."""
    @property
    def cubin(self) -> bytes:
        """The bytes of the cubin; Unsupported for other forms of code."""
    def to_object_code(self) -> ObjectCode:
        """Returns the kernel's code as a `cuda.core.ObjectCode`; its `get_kernel(kernel.name)` returns the kernel."""
    def _repr_html_(self) -> str:
        """The parameters as a table, for notebooks."""

class KernelHandle:
    """A handle to one kernel of one unit, created once."""
    @property
    def ready(self) -> bool:
        """True if `get` returns at once."""
    def get(self, timeout: float | None = None, *, stream: _StreamLike = None) -> Kernel:
        """Returns the kernel: at once if it is ready, otherwise after at most `timeout` seconds. None means no limit.
        """

class WarmupPlan:
    """The units of a pipeline's stages, to be compiled before it runs."""
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str:
        """Name of the plan."""
    def stage(self, *units: _Units) -> Self:
        """Adds a stage: the units that it uses."""
    def ensure_warm(self, session: Session | None = None, timeout: float | None = 3.0) -> list[NotReady]:
        """Requests all units and waits until each is ready or has failed, at most `timeout` seconds; None means no
        limit. Returns those that are not ready: without a device, all of them.
        """

class CompileClaim:
    """The exclusive claim to compile a missing entry, among the processes of this host and, if leases are configured,
    of the fleet. It ends with `release`, with this object, and with the process.
    """
    def release(self) -> None:
        """Gives the claim up. A second call has no effect."""
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None: ...

class ExternalCache:
    """A cache for code that another system compiled, in kiln's tiers: verified when read, shared between processes and
    hosts, shipped in bundles.
    """
    @property
    def system(self) -> str:
        """Name of the system."""
    def get(self, key: bytes) -> bytes | None:
        """Returns the bytes of a key, or None if no tier has them."""
    def get_or_claim(self, key: bytes, timeout: float | None = 30.0) -> tuple[bytes | None, CompileClaim | None]:
        """Returns (bytes, None) on a hit; (None, claim) if the caller must compile, `put` and release the claim; (None,
        None) if another holder is still compiling after the timeout or claims are not available.
        """
    def _find_or_claim(
        self, key: bytes, timeout: float | None
    ) -> tuple[bytes | None, CompileClaim | None, str]: ...
    def put(self, key: bytes, data: _Host, name: str = "", ms: float = 0.0) -> None:
        """Stores an entry. `name` appears in events and listings; `ms` is the compile time."""
    def remove(self, key: bytes) -> bool:
        """Removes an entry from this user's cache. Returns False if it does not exist."""
    def count(self) -> int:
        """Returns the number of entries in this user's cache."""
    def clear(self) -> int:
        """Removes all entries of the system from this user's cache. Returns their number."""

class ResolvedArtifact:
    """An artifact, its keys, and how the session got it."""
    @property
    def artifact(self) -> Artifact:
        """The artifact."""
    @property
    def request_key(self) -> str:
        """Key of the request, in hexadecimal."""
    @property
    def key(self) -> str:
        """Key of the artifact, in hexadecimal."""
    @property
    def origin(self) -> str:
        """Tier that had it, or 'compiled'."""
    @property
    def ms(self) -> float:
        """Time until the session had it, in milliseconds."""
    @property
    def uncacheable_reason(self) -> str:
        """Why it is not stored; empty if it is."""

class InputDifference:
    """One input that differs from that of an earlier build."""
    @property
    def input(self) -> str:
        """Kind of the input, for example 'source', 'header' or 'option'."""
    @property
    def name(self) -> str:
        """Name of the input."""
    @property
    def before(self) -> str:
        """Value in the earlier build."""
    @property
    def after(self) -> str:
        """Value now."""

class EarlierBuild:
    """An earlier build of a unit."""
    @property
    def key(self) -> str:
        """Key of its artifact, in hexadecimal."""
    @property
    def target(self) -> Target:
        """Its target."""
    @property
    def compiler(self) -> str:
        """Its compiler."""
    @property
    def built_at(self) -> float:
        """Time of the build, in seconds since 1970."""
    @property
    def cost_ms(self) -> float:
        """Time of the compile in milliseconds."""

class Explanation:
    """The reason why a unit is a cache hit or a miss."""
    @property
    def hit(self) -> bool:
        """True if a tier has the unit."""
    @property
    def artifact(self) -> ResolvedArtifact | None:
        """What the tier has; None on a miss."""
    @property
    def request_key(self) -> str:
        """Key of the request, in hexadecimal."""
    @property
    def nearest(self) -> EarlierBuild | None:
        """The earlier build that differs least; None if there is none."""
    @property
    def differences(self) -> list[InputDifference]:
        """Inputs that differ from it."""
    @property
    def summary(self) -> str:
        """The reason in a sentence."""

class Session:
    """The main interface of kiln: looks units up in the cache, compiles missing ones in the background, loads them and
    keeps them in memory. Opening one opens no file and starts no thread.
    """
    def __init__(
        self,
        settings: Mapping[str, str | int | bool | os.PathLike[str]] | None = None,
        on_event: Callable[[Event], object] | None = None,
        *,
        locked: Iterable[str] = (),
        record_undeclared: bool = False,
        collect_metrics: bool = False,
        opencl: tuple[int, int] | None = None,
        memory: Memory | None = None,
    ) -> None: ...
    def close(self) -> None:
        """Ends the use of the session and writes its trace, if there is one. Its kernels, handles and streams stay
        usable, and the last of them ends what it does in the background. A second call has no effect.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None: ...
    @staticmethod
    def _shared() -> Session: ...
    def _poll(self, unit: Unit, entry: str, first: int) -> Kernel | None: ...
    def _poll_artifact(self, unit: Unit, target: Target | str, first: int) -> Artifact | None: ...
    def _emit_failure(self, kind: str, unit: str, target: str, message: str) -> None: ...
    def _content_digest(self, files: list[tuple[str, str]], directories: list[tuple[str, str]]) -> str: ...
    def _emit_build(self, unit: str, target: str, origin: str, message: str, ms: float) -> None: ...
    def _resolve_without(
        self, rejected: Artifact, unit: Unit, target: Target | str, timeout: float
    ) -> ResolvedArtifact: ...
    def _has_device(self, backend: _Backend) -> bool: ...
    def request(self, units: _Units, target: Target | str | None = None) -> None:
        """Requests units that will be needed. Returns in microseconds; works in the background."""
    def cancel(self, units: _Units, target: Target | str | None = None) -> None:
        """Cancels a request."""
    def retry(self, units: _Units, target: Target | str | None = None) -> None:
        """Retries failed units."""
    def refresh(self, units: _Units) -> None:
        """Marks the included files of these units as possibly changed: the next get or request checks them."""
    def release(self, units: _Units) -> None:
        """Removes all data of these units. Existing kernels and handles stay usable."""
    def artifact(self, unit: Unit, target: Target | str, timeout: float | None = None) -> Artifact:
        """Returns the compiled code of a unit for a target. Needs no device, context or driver."""
    async def artifact_async(self, unit: Unit, target: Target | str, timeout: float | None = None) -> Artifact:
        """Same as `artifact`, for a coroutine: the event loop continues, and no thread waits. See `get_async`."""
    def resolve(self, unit: Unit, target: Target | str, timeout: float | None = None) -> ResolvedArtifact:
        """Same as artifact(); also returns the keys of the artifact and how the session got it."""
    def explain(self, unit: Unit, target: Target | str) -> Explanation:
        """Looks a unit up in all tiers without compiling it. On a miss, compares it with earlier builds."""
    def recorded_cost_ms(self, unit: Unit, target: Target | str) -> float | None:
        """Returns the compile time of the last recorded build in milliseconds, or None."""
    def wait_for_uploads(self, timeout: float | None = None) -> bool:
        """Waits until everything compiled so far is uploaded. Returns False if something is left after `timeout`."""
    def handle(self, unit: Unit, entry: str = "") -> KernelHandle:
        """Returns a handle to one kernel of a unit. `entry` can be left out if the unit has one."""
    def get(
        self, unit: Unit, entry: str = "", timeout: float | None = None, *, stream: _StreamLike = None
    ) -> Kernel:
        """Returns the kernel: at once if it is ready, otherwise after at most `timeout` seconds. None means no limit.
        """
    async def get_async(self, unit: Unit, entry: str = "", timeout: float | None = None) -> Kernel:
        """Same as `get`, for a coroutine: the event loop continues, and no thread waits.

        A timer of the loop checks every 1 to 10 ms, which costs microseconds. It runs on the loop's thread, whose
        context is the one that the kernel is loaded for. Canceling the coroutine ends the wait; the compile
        continues.
        """
    def devices(self, backend: _Backend) -> list[DeviceInfo]:
        """Returns the devices of a backend, 'cuda' or 'opencl'. Opens the driver."""
    def make_current(self, backend: _Backend, device: int = 0) -> None:
        """Makes a device's primary context current in this thread. For OpenCL, selects the device for all threads."""
    def stream(self, backend: _Backend) -> Stream:
        """Creates a stream in the current context, for programs that have none."""
    def external_cache(self, system: str) -> ExternalCache:
        """Returns the external cache of another compiling system; the name keeps its keys apart."""
    def status(self, *, all: bool = False) -> Status:
        """Returns a snapshot of all units; in a notebook without replaced units, unless `all` is true."""
    def metrics(self) -> str:
        """Returns the status and the counts of events in the Prometheus text format."""
    def undeclared(self) -> list[UndeclaredUse]:
        """Returns the uses of units that were not requested before, if `record_undeclared` is set."""
    def write_trace(self) -> None:
        """Writes the trace file, if the setting `trace` names one. The end of the session writes it too."""

def _set_log_function(function: Callable[[Event], object] | None) -> None: ...
def _extend_type(type: type, name: str, value: object) -> bool: ...

class OperationScope:
    """A scope of a thread, begun by kiln.operation, stage or purpose."""
    def end(self) -> None:
        """Ends the scope. A second call has no effect."""

def _begin_operation(name: str, rows: int, residency: str) -> OperationScope: ...
def _begin_stage(name: str) -> OperationScope: ...
def _begin_purpose(purpose: str) -> OperationScope: ...
def count_launch() -> None:
    """Records that this thread launched a kernel by other means than kiln."""

class Decision:
    """The backend on which an operation runs, and the reason."""
    @property
    def id(self) -> int:
        """Number of the decision in this process."""
    @property
    def operation(self) -> str:
        """Name of the operation."""
    @property
    def requested(self) -> str:
        """Requested mode: 'auto', 'cpu' or 'gpu'."""
    @property
    def source(self) -> str:
        """Where the mode comes from."""
    @property
    def selected(self) -> str:
        """Selected backend: 'cpu', 'opencl' or 'cuda'."""
    @property
    def device(self) -> str:
        """Name of the device; empty for the CPU."""
    @property
    def cpu_device(self) -> bool:
        """True if the device is a CPU."""
    @property
    def precision(self) -> str:
        """Precision in which the variant computes."""
    @property
    def planned_precision(self) -> str:
        """Precision that the plan asks for."""
    @property
    def fp64_ratio(self) -> int:
        """Ratio of single-precision to double-precision throughput of the device; 0 if unknown."""
    @property
    def robustness(self) -> str:
        """'exact' or 'bounded'."""
    @property
    def determinism(self) -> str:
        """'deterministic' or 'unordered'."""
    @property
    def reason(self) -> str:
        """Code of the reason."""
    @property
    def explanation(self) -> str:
        """The reason in a sentence, with the values."""
    @property
    def warm(self) -> bool:
        """True if all units of the variant were ready."""
    @property
    def fallback(self) -> bool:
        """True if mode auto preferred a device and could not use it."""
    @property
    def measured(self) -> bool:
        """True if the crossover comes from a calibration of this machine."""
    @property
    def crossover(self) -> int | None:
        """Number of rows from which on the device is selected; None means never by size."""
    @property
    def rows(self) -> int:
        """Number of rows."""
    @property
    def residency(self) -> str:
        """Where the rows are."""

class StageTime:
    """The duration of a stage."""
    @property
    def operation(self) -> str:
        """Name of the operation."""
    @property
    def stage(self) -> str:
        """Name of the stage."""
    @property
    def location(self) -> str:
        """'host', 'opencl' or 'cuda'."""
    @property
    def ms(self) -> float:
        """Duration in milliseconds."""

class DispatchOperation:
    """An operation with several implementations."""
    def __init__(self, name: str, precision: str, variants: list[tuple[Any, ...]]) -> None: ...
    @property
    def name(self) -> str:
        """Name of the operation."""

class Runtime:
    """Selects the backend of operations."""
    def __init__(
        self,
        session: Session | None = None,
        *,
        mode: _Mode | None = None,
        rewrites: bool | None = None,
        deterministic: bool | None = None,
        allow_cpu_device: bool | None = None,
        precision: _PrecisionPolicy | None = None,
        devices: Iterable[_Backend] | None = None,
        calibration: _Path | None = None,
        time_stages: bool | None = None,
    ) -> None: ...
    def mode(self) -> str:
        """Returns the mode: 'auto', 'cpu' or 'gpu'."""
    def mode_source(self) -> str:
        """Returns where the mode comes from."""
    def set_mode(self, mode: _Mode | None) -> None:
        """Sets the mode, or with None removes what was set here. Queries the devices again."""
    def rewrites(self) -> bool:
        """Returns whether fused rewrites of operations are used."""
    def rewrites_source(self) -> str:
        """Returns where the setting 'rewrites' comes from."""
    def set_rewrites(self, rewrites: bool | None) -> None:
        """Sets whether fused rewrites of operations are used; None removes what was set here."""
    def deterministic(self) -> bool:
        """Returns whether only variants with deterministic results are used."""
    def deterministic_source(self) -> str:
        """Returns where the setting 'deterministic' comes from."""
    def set_deterministic(self, deterministic: bool | None) -> None:
        """Sets whether only variants with deterministic results are used; None removes what was set here."""
    def allow_cpu_device(self) -> bool:
        """Returns whether an OpenCL device that is a CPU may be selected."""
    def allow_cpu_device_source(self) -> str:
        """Returns where the setting 'allow_cpu_device' comes from."""
    def set_allow_cpu_device(self, allow_cpu_device: bool | None) -> None:
        """Sets whether an OpenCL device that is a CPU may be selected; None removes what was set here."""
    def time_stages(self) -> bool:
        """Returns whether a stage waits for its stream, so that its duration includes the device's work."""
    def time_stages_source(self) -> str:
        """Returns where the setting 'time_stages' comes from."""
    def set_time_stages(self, time_stages: bool | None) -> None:
        """Sets whether a stage waits for its stream, so that its duration includes the device's work; None removes what
        was set here.
        """
    def precision(self) -> str:
        """Returns the precision policy: 'auto' or 'fp64'."""
    def precision_source(self) -> str:
        """Returns where the precision policy comes from."""
    def set_precision(self, precision: _PrecisionPolicy | None) -> None:
        """Sets the precision policy, or with None removes what was set here."""
    def decide(
        self,
        operation: DispatchOperation,
        *,
        rows: int,
        residency: _RowsOn = "host",
        device: _Backend | None = None,
    ) -> Decision:
        """Selects the backend of an operation and requests the units of the selected variant."""
    def should_rewrite(
        self, name: str, replaced: DispatchOperation, by: DispatchOperation | None, *, rows: int
    ) -> bool:
        """Returns whether rewrites are on, and emits the event of the rewrite. `by` is None if the result is an input.
        """
    def counts(self) -> dict[str, int]:
        """Returns the numbers of decisions and runs so far."""
    def last_stages(self) -> list[StageTime]:
        """Returns the stages of the outermost scope that ended last."""
    def status(self) -> dict[str, Any]:
        """Returns the counts, and each setting with its source."""

class Memory:
    """The CUDA memory of a session."""
    def __init__(
        self,
        *,
        tier: _MemoryTier | None = None,
        limit: int | None = None,
        retries: int | None = None,
        on_out_of_memory: Callable[[int], bool] | None = None,
        driver: _Path | None = None,
    ) -> None: ...
    def tier(self) -> str:
        """Returns the tier in use: 'pool', 'retrying_pool', 'managed' or 'plain'."""
    def settings(self) -> dict[str, Any]:
        """Returns each setting with its source."""
    def usage(self) -> dict[str, int]:
        """Returns the bytes in use, their maximum so far, and the numbers of retries and failures."""
    def set_tier(self, tier: _MemoryTier | None) -> None:
        """Sets the tier, or with None removes what was set here. Only before the first allocation."""
    def set_limit(self, limit: int | None) -> None:
        """Sets the size limit of each device's pool in bytes; 0 means unlimited. Only before the first allocation."""
    def set_retries(self, retries: int | None) -> None:
        """Sets how often one allocation asks for memory. Only before the first allocation."""
    def trim(self) -> None:
        """Returns unused memory of the pools to the driver."""

def _check_variant(declared: tuple[Any, ...]) -> None: ...

class DispatchStage:
    """A stage of a run."""
    def end(self) -> None:
        """Ends the stage. A second call has no effect."""

class Dispatch:
    """One run of an operation."""
    @property
    def decision(self) -> Decision:
        """Where the operation runs, and why."""
    @property
    def variant(self) -> int:
        """Index of the variant to run."""
    def fall_back(self, code: str, message: str) -> bool:
        """Reports that the variant failed. Returns True if the caller must run `variant` again."""
    def begin_stage(self, name: str, stream: Stream | None, on_host: bool) -> DispatchStage | None:
        """Begins a stage of this run; None if the thread is in another operation."""
    def end(self) -> None:
        """Ends the run. A second call has no effect."""

def _begin_dispatch(
    runtime: Runtime, operation: DispatchOperation, rows: int, residency: str, device: str | None
) -> Dispatch: ...

class WorkflowScope:
    """A scope in which the calling thread uses one decision."""
    @property
    def decision(self) -> Decision:
        """The decision that all operations use."""
    def next_chunk(self, rows: int, residency: str, device: str | None) -> None:
        """Begins another chunk and decides again."""
    def end(self) -> None:
        """Ends the workflow. A second call has no effect."""

def _begin_workflow(
    runtime: Runtime,
    name: str,
    operations: Iterable[DispatchOperation],
    rows: int,
    residency: str,
    device: str | None,
) -> WorkflowScope: ...
