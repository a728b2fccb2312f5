"""kiln removes the first-call wait from GPU code that is compiled at run time.

Importing it opens no library but its own extension, starts no thread and reads no configuration: the first request does
what it needs. docs/python.md has the whole story.
"""

from __future__ import annotations

from ._kiln import (
    Artifact,
    Buffer,
    Cold,
    DeviceInfo,
    Event,
    ForeignCache,
    Handle,
    Kernel,
    LinkPart,
    LocalMemory,
    Occupancy,
    Plan,
    Session,
    Status,
    Stream,
    Target,
    Turn,
    UndeclaredUse,
    Unit,
    UnitStatus,
    __version__,
)
from ._more import complete
from .errors import (
    Cancelled,
    Capturing,
    CompileError,
    Corrupt,
    Error,
    InvalidArgument,
    LoadRefused,
    Refused,
    TimedOut,
    Unavailable,
    Unsupported,
)

complete()

# The session of those who want none of their own. It is never closed; what it runs ends when the process does.
shared = Session._shared()
request_warmup = shared.request
get = shared.get
get_async = shared.get_async
artifact = shared.artifact
status = shared.status

__all__ = [
    "Artifact",
    "Buffer",
    "Cancelled",
    "Capturing",
    "Cold",
    "CompileError",
    "Corrupt",
    "DeviceInfo",
    "Error",
    "Event",
    "ForeignCache",
    "Handle",
    "InvalidArgument",
    "Kernel",
    "LinkPart",
    "LoadRefused",
    "LocalMemory",
    "Occupancy",
    "Plan",
    "Refused",
    "Session",
    "Status",
    "Stream",
    "Target",
    "TimedOut",
    "Turn",
    "Unavailable",
    "UndeclaredUse",
    "Unit",
    "UnitStatus",
    "Unsupported",
    "__version__",
    "artifact",
    "get",
    "get_async",
    "request_warmup",
    "shared",
    "status",
]
