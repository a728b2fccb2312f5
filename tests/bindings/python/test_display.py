# SPDX-License-Identifier: Apache-2.0
"""What a person sees: log records, the progress of a warm-up, tables in notebooks."""

from __future__ import annotations

import io
import logging
import sys
import types
import unittest
from unittest import mock

import support

support.private_cache()

import kiln  # noqa: E402


def command(name: str, script: str) -> kiln.Unit:
    """A unit whose compiler is a shell script."""
    return kiln.Unit.command(name, "", ["/bin/sh", "-c", f"{script}; : {{source}} {{output}}"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Logging(unittest.TestCase):
    def fail_to_compile(self, session: kiln.Session, name: str) -> None:
        with self.assertRaises(kiln.Error):
            session.artifact(command(name, "echo wrong >&2; exit 1"), "sm_80", timeout=support.PATIENT)

    def test_events_become_records_of_existing_sessions(self) -> None:
        session = kiln.Session()
        own: list[kiln.Event] = []
        other = kiln.Session(on_event=own.append)
        with self.assertNoLogs("kiln"):
            self.fail_to_compile(session, "before.cu")
        kiln.log_events("INFO")
        try:
            with self.assertLogs("kiln", "INFO") as logs:
                self.fail_to_compile(session, "during.cu")
                self.fail_to_compile(kiln.shared, "shared.cu")
                self.fail_to_compile(other, "other.cu")
        finally:
            kiln.log_events(None)
        with self.assertNoLogs("kiln"):
            self.fail_to_compile(session, "after.cu")
        failed = [record for record in logs.records if record.kiln_event.kind == "compile_failed"]  # type: ignore[attr-defined]
        self.assertEqual([record.kiln_event.unit for record in failed], ["during.cu", "shared.cu"])  # type: ignore[attr-defined]
        self.assertEqual({record.levelno for record in failed}, {logging.ERROR})
        self.assertIn("compile_failed during.cu for sm_80: ", failed[0].getMessage())
        self.assertIn("compile_failed", [event.kind for event in own])

    def test_log_event_can_be_the_callback_of_a_session(self) -> None:
        logging.getLogger("kiln").setLevel(logging.DEBUG)
        with self.assertLogs("kiln", "DEBUG") as logs:
            self.fail_to_compile(kiln.Session(on_event=kiln.log_event), "explicit.cu")
        self.assertIn("explicit.cu", "\n".join(logs.output))

    def test_levels_name_events_that_exist(self) -> None:
        from kiln import _logging

        declared = (support.ROOT / "src" / "events" / "event.cpp").read_text()
        self.assertEqual([kind for kind in _logging._LEVELS if f'"{kind}"' not in declared], [])


class Progress(unittest.TestCase):
    def requested(self, name: str) -> kiln.Session:
        session = kiln.Session({"jobs": 1})
        session.request([command(f"{name}{i}.cu", "sleep 0.4; exit 1") for i in range(2)], "sm_80")
        return session

    def test_text_on_a_terminal_is_one_line(self) -> None:
        file = Terminal()
        with mock.patch.dict(sys.modules, {"tqdm.auto": None}):
            status = kiln.warmup_progress(self.requested("terminal"), timeout=support.PATIENT, file=file)
        self.assertEqual((status.pending, status.failed), (0, 2))
        lines = file.getvalue().split("\r")
        self.assertIn("kiln: 0/2 units", lines[1])
        self.assertIn("kiln: 2/2 units: 0 compiled, 0 cached, 0 pending, 2 failed", lines[-1])
        self.assertEqual(file.getvalue().count("\n"), 1)

    def test_text_in_a_file_has_few_lines(self) -> None:
        file = io.StringIO()
        with mock.patch.dict(sys.modules, {"tqdm.auto": None}):
            kiln.warmup_progress(self.requested("file"), timeout=support.PATIENT, file=file)
        self.assertNotIn("\r", file.getvalue())
        self.assertIn("kiln: 2/2 units", file.getvalue().splitlines()[-1])

    def test_tqdm_is_used_if_it_is_installed(self) -> None:
        bars: list[mock.Mock] = []

        def tqdm(**options: object) -> mock.Mock:
            bars.append(mock.Mock(**options))
            return bars[-1]

        modules = {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=tqdm)}
        with mock.patch.dict(sys.modules, modules):
            kiln.warmup_progress(self.requested("bar"), timeout=support.PATIENT)
        self.assertEqual((bars[0].total, bars[0].n), (2, 2))
        bars[0].close.assert_called_once()

    def test_timeout_returns_what_is_pending(self) -> None:
        session = kiln.Session()
        session.request(command("long.cu", "sleep 60"), "sm_80")
        with mock.patch.dict(sys.modules, {"tqdm.auto": None}):
            status = kiln.warmup_progress(session, timeout=0.2, file=io.StringIO())
        self.assertEqual(status.pending, 1)


class Notebook(unittest.TestCase):
    def test_status_is_a_table(self) -> None:
        session = kiln.Session()
        with self.assertRaises(kiln.Error):
            session.artifact(command("<b>.cu", "exit 1"), "sm_80", timeout=support.PATIENT)
        html = session.status()._repr_html_()
        self.assertIn("<caption>1 units: 0 compiled", html)
        self.assertIn("<td>&lt;b&gt;.cu</td><td>sm_80</td><td>failed</td>", html)


if __name__ == "__main__":
    unittest.main()
