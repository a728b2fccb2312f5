# SPDX-License-Identifier: Apache-2.0
"""CCCL units in status, plans and events. NVIDIA's library really compiles them; the driver double loads them, and nothing
is executed."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import unittest

import support

support.private_cache()

import kiln  # noqa: E402

REDUCE = kiln.Unit.cccl("reduce_sum_i32")
SEARCH = kiln.Unit.cccl("lower_bound_i32")
SOURCE = kiln.Unit.cuda("k.cu", "__global__ void k() {}", entries="k")


def cccl_package() -> str | None:
    """Returns the folder that cuda-cccl is installed into."""
    try:
        found = importlib.util.find_spec("cuda.compute")
    except ModuleNotFoundError:
        return None
    return str(pathlib.Path(found.origin).parents[2]) if found and found.origin else None


class Defaults(unittest.TestCase):
    def test_source_units_wait_without_limit_and_plans_three_seconds(self) -> None:
        for function in (kiln.Session.get, kiln.KernelHandle.get, kiln.Session.artifact):
            self.assertIn("timeout: float | None = None", str(function.__doc__))
        self.assertIn("timeout: float | None = 3.0", str(kiln.WarmupPlan.ensure_warm.__doc__))


@unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "this machine has an NVIDIA device")
class WithoutDevice(unittest.TestCase):
    def test_plan_lists_all_units(self) -> None:
        session = kiln.Session()
        not_ready = kiln.WarmupPlan("all").stage(REDUCE, SOURCE).ensure_warm(session)
        self.assertEqual([one.unit for one in not_ready], ["reduce_sum_i32", "k.cu"])
        self.assertEqual({one.reason for one in not_ready}, {"there is no device for units of kind cuda"})
        self.assertEqual(session.status().submitted, 0)


@unittest.skipUnless(os.environ.get("KILN_FAKE_DRIVER"), "KILN_FAKE_DRIVER does not name the driver's double")
@unittest.skipUnless(cccl_package(), "cuda-cccl is not installed")
class Device(unittest.TestCase):
    def test_cccl_units_are_reported_like_others(self) -> None:
        events: list[kiln.Event] = []
        settings = {"driver": os.environ["KILN_FAKE_DRIVER"], "cccl": str(cccl_package())}
        session = kiln.Session(settings, on_event=events.append, record_undeclared=True)
        plan = kiln.WarmupPlan("join").stage(REDUCE).stage([SOURCE])
        early = plan.ensure_warm(session, timeout=0)
        self.assertEqual([one.unit for one in early], ["reduce_sum_i32", "k.cu"])
        self.assertEqual(plan.ensure_warm(session, timeout=support.PATIENT), [])

        status = session.status()
        self.assertEqual((status.submitted, status.compiled, status.pending, status.failed), (2, 2, 0, 0))
        self.assertGreater(status.wall_ms, 0)
        self.assertEqual(
            [(one.unit, one.kind, one.target, one.state) for one in status.units],
            [("reduce_sum_i32", "cccl", "cccl_80", "ready"), ("k.cu", "cuda", "sm_80", "ready")],
        )
        self.assertTrue(all(one.ms > 0 for one in status.units))
        self.assertIn("reduce_sum_i32 for cccl_80: ready, compiled", str(status))
        self.assertEqual(session.undeclared(), [], "a plan declares its units")

        session.artifact(REDUCE, "sm_80", timeout=support.PATIENT)
        self.assertEqual(session.undeclared(), [])
        session.artifact(SEARCH, "sm_80", timeout=support.PATIENT)
        self.assertEqual([use.unit for use in session.undeclared()], ["lower_bound_i32"])
        self.assertIn("test_cccl.py", session.undeclared()[0].caller)
        alarms = [event for event in events if event.kind == "blocking_compile" and event.unit == "lower_bound_i32"]
        self.assertEqual(len(alarms), 1)
        self.assertIn("test_cccl.py", alarms[0].message)
        self.assertIsNone(alarms[0].warm)


if __name__ == "__main__":
    unittest.main()
