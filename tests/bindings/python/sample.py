# SPDX-License-Identifier: Apache-2.0
"""Sample user code for mypy --strict: the package's stubs must type every line."""

import kiln
import numpy
import numpy.typing

saxpy: kiln.Unit = kiln.Unit.opencl("saxpy.cl", "kernel void saxpy() {}", entries=["saxpy"], headers={"a.h": ""})
kiln.request_warmup([saxpy])
kiln.request_warmup(saxpy, target="sm_90")


def launch(data: bytes) -> bytearray:
    stream: kiln.Stream = kiln.shared.stream("opencl")
    memory: kiln.Buffer = stream.copy_of(data)
    kernel: kiln.Kernel = kiln.get(saxpy, timeout=2.0)
    kernel.launch(3.0, memory, grid=(16, 1), block=64, stream=stream)
    return stream.download(memory)


def ship() -> dict[str, kiln.Unit]:
    kiln.use_bundle("app.kiln")
    return kiln.read_manifest("kiln.toml")


def arrays(data: "numpy.typing.NDArray[numpy.float32]") -> float:
    unit: kiln.Unit = kiln.Unit.from_file("saxpy.cl", entries=["saxpy"])
    with kiln.Session() as session:
        stream = session.stream("opencl")
        x, y = stream.copy_of(data), stream.allocate(data.shape, data.dtype)
        kernel = session.get(unit)
        kernel.launch(3.0, x, y, grid=1, block=len(data), stream=stream)
        print([parameter.type for parameter in kernel.parameters])
        return float(stream.to_numpy(y)[0])


def watch() -> int:
    kiln.log_events("DEBUG")
    return kiln.warmup_progress(timeout=10).failed


async def code() -> bytes:
    return (await kiln.artifact_async(saxpy, "sm_90")).bytes


async def wait() -> int:
    kernel = await kiln.get_async(saxpy, "saxpy", timeout=None)
    return kernel.handle + len(kernel.cubin)


def listen(event: kiln.Event) -> None:
    print(event.kind, event.ms)


def report() -> str:
    session = kiln.Session({"cache.dir": "cache", "jobs": 0, "disable": False}, on_event=listen)
    not_ready: list[kiln.NotReady] = kiln.WarmupPlan("all").stage(saxpy, [saxpy]).ensure_warm(session, timeout=10)
    try:
        session.artifact(saxpy, kiln.Target("sm_90"), timeout=5)
    except kiln.CompileError as error:
        return f"{error.line}: {error.excerpt()}"
    except TimeoutError:
        return "later"
    states = "\n".join(f"{unit.unit} {unit.state}" for unit in kiln.status().units)
    return states + "".join(one.reason for one in not_ready)


@kiln.operation("sample.total", rows=lambda items: len(items), residency="host")
def total(items: list[int]) -> int:
    with kiln.stage("add"), kiln.purpose("input"):
        return sum(items)


summed: int = total([1, 2])
adding = kiln.runtime.Operation(
    "sample.add",
    precision="metric",
    variants=[kiln.runtime.Variant(total, backend="cpu", robustness="exact", determinism="deterministic")],
)


def decide() -> str:
    kiln.runtime.set_mode("cpu")
    with kiln.runtime.Workflow("sample", [adding], rows=3) as workflow:
        workflow.next_chunk(rows=4)
    decision: kiln.runtime.Decision = kiln.runtime.decide(adding, rows=5)
    return decision.explanation
