# SPDX-License-Identifier: Apache-2.0
"""kiln removes the first-call wait from GPU code that is compiled at run time.

Importing it opens no library except its own extension, starts no thread and reads no configuration: the first request
does what it needs. See docs/reference/python.md.
"""

from __future__ import annotations

from ._kiln import (
    Artifact,
    Buffer,
    CcclInfo,
    CompileClaim,
    DeviceInfo,
    EarlierBuild,
    Event,
    Explanation,
    ExternalCache,
    InputDifference,
    Kernel,
    KernelHandle,
    KernelParameter,
    LinkPart,
    LocalMemory,
    NotReady,
    Occupancy,
    ResolvedArtifact,
    Session,
    Status,
    Stream,
    Target,
    UndeclaredUse,
    Unit,
    UnitStatus,
    WarmupPlan,
    __version__,
    count_launch,
    default_stream,
    per_thread_stream,
    read_manifest,
    use_bundle,
)
from ._logging import log_event, log_events
from ._methods import attach_methods
from ._operation import operation, purpose, stage
from ._progress import warmup_progress
from .errors import (
    Cancelled,
    Capturing,
    CompileError,
    Corrupt,
    Denied,
    Error,
    InvalidArgument,
    LoadRejected,
    TimedOut,
    Unavailable,
    Unsupported,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import runtime
else:

    def __getattr__(name):
        """Imports kiln.runtime when it is first used: most programs do not need it."""
        if name != "runtime":
            raise AttributeError(f"module 'kiln' has no attribute '{name}'")
        import kiln.runtime as made

        return made


attach_methods()

# A process-wide session for programs that need none of their own. It is never closed; its work ends with the process.
shared = Session._shared()
request_warmup = shared.request
get = shared.get
get_async = shared.get_async
artifact = shared.artifact
artifact_async = shared.artifact_async
status = shared.status

__all__ = [
    "Artifact",
    "Buffer",
    "Cancelled",
    "Capturing",
    "CcclInfo",
    "CompileClaim",
    "CompileError",
    "Corrupt",
    "Denied",
    "DeviceInfo",
    "EarlierBuild",
    "Error",
    "Event",
    "Explanation",
    "ExternalCache",
    "InputDifference",
    "InvalidArgument",
    "Kernel",
    "KernelHandle",
    "KernelParameter",
    "LinkPart",
    "LoadRejected",
    "LocalMemory",
    "NotReady",
    "Occupancy",
    "ResolvedArtifact",
    "Session",
    "Status",
    "Stream",
    "Target",
    "TimedOut",
    "Unavailable",
    "UndeclaredUse",
    "Unit",
    "UnitStatus",
    "Unsupported",
    "WarmupPlan",
    "__version__",
    "artifact",
    "artifact_async",
    "count_launch",
    "default_stream",
    "get",
    "get_async",
    "log_event",
    "log_events",
    "operation",
    "per_thread_stream",
    "purpose",
    "read_manifest",
    "request_warmup",
    "runtime",
    "shared",
    "stage",
    "status",
    "use_bundle",
    "warmup_progress",
]
