# SPDX-License-Identifier: Apache-2.0
"""Events as records of the logger `kiln`. `logging` is imported when it is first used."""

from __future__ import annotations

from . import _kiln

# As in `logging`; events that are not here are DEBUG.
_INFO, _WARNING, _ERROR = 20, 30, 40
_LEVELS = {
    "compiled": _INFO,
    "claim_waited": _INFO,
    "lease_waited": _INFO,
    "hedged": _INFO,
    "cancelled": _INFO,
    "evicted": _INFO,
    "no_device": _INFO,
    "uploaded": _INFO,
    "remote_recovered": _INFO,
    "headers_installed": _INFO,
    "library_checked": _INFO,
    "pch_created": _INFO,
    "pch_unavailable": _INFO,
    "blocking_compile": _INFO,
    "undeclared": _WARNING,
    "not_published": _WARNING,
    "entry_dropped": _WARNING,
    "cache_unavailable": _WARNING,
    "claim_unavailable": _WARNING,
    "worker_unavailable": _WARNING,
    "worker_lost": _WARNING,
    "config_warning": _WARNING,
    "load_rejected": _WARNING,
    "called_fallback": _WARNING,
    "bundle_rejected": _WARNING,
    "bundle_incompatible": _WARNING,
    "record_unavailable": _WARNING,
    "remote_rejected": _WARNING,
    "remote_unavailable": _WARNING,
    "upload_dropped": _WARNING,
    "lease_lost": _WARNING,
    "quarantined": _ERROR,
    "compile_failed": _ERROR,
}


def log_event(event: _kiln.Event) -> None:
    """Writes an event to the logger `kiln`; `record.kiln_event` is the event. Can be the `on_event` of a session."""
    import logging

    logger = logging.getLogger("kiln")
    level = _LEVELS.get(event.kind, logging.DEBUG)
    if not logger.isEnabledFor(level):
        return
    place = f" {event.unit}" if event.unit else ""
    target = f" for {event.target}" if event.target else ""
    reason = f": {event.message}" if event.message else ""
    duration = f" ({event.ms:.1f} ms)" if event.ms else ""
    logger.log(level, "%s", f"{event.kind}{place}{target}{reason}{duration}", extra={"kiln_event": event})


def log_events(level: int | str | None = "INFO") -> None:
    """Writes the events of `kiln.shared` and of every session without its own `on_event` to the logger `kiln`.

    Sets the level of the logger. Compiles are INFO, what failed or is not available WARNING or ERROR, and all else
    DEBUG. None ends it. Where the records go is configured as usual, for example by `logging.basicConfig()`.
    """
    if level is not None:
        import logging

        logging.getLogger("kiln").setLevel(level)
    _kiln._set_log_function(None if level is None else log_event)
