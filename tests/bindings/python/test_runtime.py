# SPDX-License-Identifier: Apache-2.0
"""kiln.runtime: modes, decisions, variants that are Python functions, fallbacks and workflows. Kernels run on PoCL, which is
a CPU device and therefore must be allowed."""

from __future__ import annotations

import array
import functools
import os
import threading
import unittest
from collections.abc import Generator
from typing import Any

import support

support.private_cache()

import kiln  # noqa: E402
from kiln import _kiln, runtime  # noqa: E402

UNIT = kiln.Unit.opencl("twice.cl", "kernel void twice(global int* x) { x[get_global_id(0)] *= 2; }", entries="twice")
CROSSOVER = 64


def on_cpu(x: array.array[int]) -> array.array[int]:
    return array.array("i", [2 * item for item in x])


def fail_on_device(x: Any) -> Any:
    raise OSError("the device is gone")


def variant(function: Any, backend: str, **more: Any) -> runtime.Variant:
    declared = {"backend": backend, "robustness": "exact", "determinism": "deterministic", **more}
    return runtime.Variant(function, **declared)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.events: list[kiln.Event] = []
        self.session = kiln.Session(on_event=self.events.append)
        self.runtime = runtime.Runtime(self.session, allow_cpu_device=True)
        self.stream = self.session.stream("opencl")

    def of_kind(self, kind: str) -> list[kiln.Event]:
        return [event for event in self.events if event.kind == kind]

    def on_device(self, x: array.array[int]) -> array.array[int]:
        kernel = self.session.get(UNIT, timeout=support.PATIENT)
        with kiln.stage("copy", on_host=True):
            items = self.stream.copy_of(x)
        with kiln.stage("double", stream=self.stream):
            kernel.launch(items, grid=len(x), block=1, stream=self.stream)
        with kiln.purpose("materialize"):
            return self.stream.download(items, array.array("i", x))

    def twice(self, function: Any = None) -> runtime.Operation:
        device = variant(function or self.on_device, "opencl", crossover=CROSSOVER, requirements=[UNIT])
        return runtime.Operation("test.twice", precision="metric", variants=[variant(on_cpu, "cpu"), device])


class Settings(Case):
    def test_override_is_stronger_than_variable_and_default(self) -> None:
        script = """
            from kiln import runtime
            print(runtime.mode(), runtime.mode_source())
            runtime.set_mode("gpu")
            print(runtime.mode(), runtime.mode_source())
            runtime.set_mode(None)
            print(runtime.mode(), runtime.mode_source(), runtime.status()["mode"])
            print(runtime.rewrites(), runtime.deterministic(), runtime.deterministic_source())
            """
        done = support.run(script, KILN_EXECUTION_MODE="cpu", KILN_REWRITES="off", KILN_DETERMINISTIC="yes")
        self.assertEqual(
            done.stdout.splitlines(),
            ["cpu environment", "gpu override", "cpu environment cpu", "False True environment"],
            done.stderr,
        )

    def test_defaults_and_setters_of_every_setting(self) -> None:
        made = runtime.Runtime(self.session)
        self.assertEqual((made.mode(), made.mode_source(), made.precision()), ("auto", "default", "auto"))
        for name, default in [("rewrites", True), ("deterministic", False), ("allow_cpu_device", False), ("time_stages", False)]:
            self.assertEqual((getattr(made, name)(), getattr(made, name + "_source")()), (default, "default"))
            getattr(made, "set_" + name)(not default)
            self.assertEqual((getattr(made, name)(), getattr(made, name + "_source")()), (not default, "override"))
            getattr(made, "set_" + name)(None)
            self.assertEqual(getattr(made, name)(), default)
        made.set_precision("fp64")
        self.assertEqual((made.status()["precision"], made.precision_source()), ("fp64", "override"))
        with self.assertRaisesRegex(ValueError, "must be one of auto"):
            made.set_mode("fast")  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "must be one of auto"):
            made.set_precision("fp8")  # type: ignore[arg-type]

    def test_wrong_arguments_are_named_at_the_call(self) -> None:
        with self.assertRaisesRegex(ValueError, "a device must be one of opencl, cuda, not 'cpu'"):
            runtime.Runtime(self.session, devices=["cpu"])  # type: ignore[list-item]
        with self.assertRaisesRegex(TypeError, "session must be a kiln.Session, not int"):
            runtime.Runtime(5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "on_out_of_memory must be a function, not int"):
            runtime.Memory(on_out_of_memory=5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "memory must be a kiln.runtime.Memory, not int"):
            kiln.Session(memory=5)  # type: ignore[arg-type]


class MemoryTiers(unittest.TestCase):
    def test_settings_and_their_sources(self) -> None:
        memory = runtime.Memory(tier="managed", limit=4096)
        self.assertEqual(memory.tier(), "none")
        self.assertEqual(memory.settings()["tier"], "managed")
        self.assertEqual((memory.settings()["limit"], memory.settings()["limit_source"]), (4096, "override"))
        self.assertEqual((memory.settings()["retries"], memory.settings()["retries_source"]), (3, "default"))
        memory.set_tier("plain")
        memory.set_limit(None)
        memory.set_retries(1)
        settings = memory.settings()
        self.assertEqual((settings["tier"], settings["limit_source"], settings["retries"]), ("plain", "default", 1))
        self.assertEqual(memory.usage(), {"bytes": 0, "peak": 0, "retries": 0, "failures": 0})
        with self.assertRaisesRegex(ValueError, "tier must be one of pool, retrying_pool"):
            memory.set_tier("swimming")  # type: ignore[arg-type]

    @unittest.skipUnless(os.environ.get("KILN_FAKE_DRIVER"), "KILN_FAKE_DRIVER does not name the driver's double")
    def test_session_takes_its_memory(self) -> None:
        script = """
            import os, kiln
            from kiln import runtime
            asked = []
            memory = runtime.Memory(tier="retrying_pool", limit=8192, on_out_of_memory=lambda wanted: bool(asked.append(wanted)),
                                    driver=os.environ["KILN_FAKE_DRIVER"])
            session = kiln.Session({"driver": os.environ["KILN_FAKE_DRIVER"]}, memory=memory)
            session.make_current("cuda")
            stream = session.stream("cuda")
            kept = stream.allocate(8000)
            print(memory.tier(), memory.usage()["bytes"])
            try:
                stream.allocate(1000)
            except kiln.Unavailable as error:
                print(asked, "limit of 8192 bytes" in str(error))
            """
        done = support.run(script)
        self.assertEqual(done.stdout.splitlines(), ["retrying_pool 8000", "[1000] True"], done.stderr)


class Decisions(Case):
    def test_decision_has_all_fields(self) -> None:
        operation = self.twice()
        small = self.runtime.decide(operation, rows=CROSSOVER - 1)
        self.assertEqual((small.selected, small.reason, small.device), ("cpu", "below crossover", ""))
        large = self.runtime.decide(operation, rows=CROSSOVER)
        self.assertEqual((large.operation, large.selected, large.reason), ("test.twice", "opencl", "above crossover"))
        self.assertEqual((large.requested, large.source, large.residency), ("auto", "default", "host"))
        self.assertEqual((large.rows, large.crossover, large.fallback, large.measured), (CROSSOVER, CROSSOVER, False, False))
        self.assertEqual((large.robustness, large.determinism, large.precision), ("exact", "deterministic", "fp64"))
        self.assertEqual((large.planned_precision, large.cpu_device), ("fp64", True))
        self.assertGreater(large.id, small.id)
        self.assertIn("64 rows", large.explanation)
        self.assertIn("test.twice on opencl", repr(large))
        self.assertEqual(self.runtime.counts()["decisions"], 2)

    def test_cpu_device_needs_permission(self) -> None:
        self.runtime.set_allow_cpu_device(None)
        self.assertEqual(self.runtime.decide(self.twice(), rows=CROSSOVER).selected, "cpu")
        self.runtime.set_mode("gpu")
        with self.assertRaisesRegex(kiln.Error, "KILN_ALLOW_CPU_DEVICE"):
            self.twice()(array.array("i", [1]), rows=1, runtime=self.runtime)

    def test_deterministic_leaves_unordered_variants_out(self) -> None:
        unordered = variant(self.on_device, "opencl", determinism="unordered", crossover=1)
        operation = runtime.Operation("test.unordered", precision="metric", variants=[variant(on_cpu, "cpu"), unordered])
        self.assertEqual(self.runtime.decide(operation, rows=9).selected, "opencl")
        self.runtime.set_deterministic(True)
        self.assertEqual(self.runtime.decide(operation, rows=9).selected, "cpu")

    def test_variant_must_declare_robustness_and_determinism(self) -> None:
        with self.assertRaisesRegex(TypeError, "robustness"):
            runtime.Variant(on_cpu, backend="cpu", determinism="deterministic")  # type: ignore[call-arg]
        with self.assertRaisesRegex(TypeError, "determinism"):
            runtime.Variant(on_cpu, backend="cpu", robustness="exact")  # type: ignore[call-arg]
        with self.assertRaisesRegex(ValueError, "robustness must be one of exact, bounded"):
            runtime.Operation("x", precision="metric", variants=[variant(on_cpu, "cpu", robustness="good")])
        with self.assertRaisesRegex(ValueError, "has no variants"):
            runtime.Operation("x", precision="metric", variants=[])
        with self.assertRaisesRegex(TypeError, "must be a kiln.runtime.Variant"):
            runtime.Operation("x", precision="metric", variants=[on_cpu])  # type: ignore[list-item]

        def generator() -> Generator[int, None, None]:
            yield 1

        for function in (generator, functools.partial(generator)):
            with self.assertRaisesRegex(TypeError, "generator"):
                variant(function, "cpu")

    def test_variant_checks_what_it_declares(self) -> None:
        expected = "crossover must be None or a number of rows from 0 to 2"
        for crossover, kind in ((-1, ValueError), (2**64, ValueError), (1.5, TypeError), ([], TypeError)):
            with self.subTest(crossover), self.assertRaisesRegex(kind, expected):
                variant(on_cpu, "cpu", crossover=crossover)
        with self.assertRaisesRegex(ValueError, "backend must be one of cpu, opencl, cuda, not 'tpu'"):
            variant(on_cpu, "tpu")
        with self.assertRaisesRegex(TypeError, "precision must be a string, not int"):
            variant(on_cpu, "cpu", precision=64)
        with self.assertRaisesRegex(TypeError, "expected a kiln.Unit"):
            variant(on_cpu, "cpu", requirements=["twice.cl"])

    def test_variant_of_two_operations_keeps_its_requirements(self) -> None:
        both = [variant(on_cpu, "cpu"), variant(self.on_device, "opencl", requirements=iter([UNIT]))]
        operations = [runtime.Operation(name, precision="metric", variants=both) for name in ("test.1", "test.2")]
        self.runtime.decide(operations[1], rows=1)
        self.assertEqual(len(self.session.status().units), 1)

    def test_rows_on_a_device_name_it(self) -> None:
        decided = self.runtime.decide(self.twice(), rows=1, residency="device", device="opencl")
        self.assertEqual((decided.selected, decided.reason), ("opencl", "resident"))
        with self.assertRaisesRegex(ValueError, "need device="):
            self.runtime.decide(self.twice(), rows=1, residency="device")


class Runs(Case):
    def test_run_claims_the_device_where_it_launched(self) -> None:
        x = array.array("i", range(CROSSOVER))
        self.assertEqual(self.twice()(x, rows=len(x), runtime=self.runtime), on_cpu(x))
        (run,) = self.of_kind("dispatched")
        (launch,) = self.of_kind("launched")
        self.assertEqual((run.selected, run.operation, run.rows), ("opencl", "test.twice", CROSSOVER))
        self.assertEqual((launch.operation, launch.stage, launch.dispatch), ("test.twice", "double", run.dispatch))
        self.assertEqual(self.of_kind("copied")[-1].purpose, "materialize")
        stages = [(stage.stage, stage.location) for stage in self.runtime.last_stages()]
        self.assertEqual(stages, [("copy", "host"), ("double", "opencl")])
        self.assertEqual(self.twice()(x[:2], rows=2, runtime=self.runtime), on_cpu(x[:2]))
        counts = self.runtime.counts()
        self.assertEqual((counts["dispatches"], counts["on_device"], counts["on_gpu"]), (2, 1, 0))

    def test_stage_of_nested_operation_belongs_to_it(self) -> None:
        def nested(x: Any) -> Any:
            with kiln.operation("test.inner"), kiln.stage("part"):
                self.stream.synchronize()
            return x

        self.twice(nested)(array.array("i"), rows=CROSSOVER, runtime=self.runtime)
        (waited,) = self.of_kind("synchronized")
        (run,) = self.of_kind("dispatched")
        self.assertEqual((waited.operation, waited.stage, waited.workflow), ("test.inner", "part", run.workflow))
        self.assertEqual(self.of_kind("stage_finished"), [])

    def test_failed_device_variant_falls_back_with_event(self) -> None:
        x = array.array("i", range(CROSSOVER))
        self.assertEqual(self.twice(fail_on_device)(x, rows=len(x), runtime=self.runtime), on_cpu(x))
        (fell_back,) = self.of_kind("fell_back")
        self.assertIn("OSError: the device is gone", fell_back.message)
        self.assertEqual(self.of_kind("dispatched")[0].selected, "cpu")
        self.assertEqual(self.runtime.counts()["fallbacks"], 1)

    def test_error_without_a_valid_text_falls_back(self) -> None:
        class Silent(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        x = array.array("i", range(CROSSOVER))
        for error in (OSError("no file \udcff"), Silent()):

            def fail(x: Any, error: Exception = error) -> Any:
                raise error

            self.assertEqual(self.twice(fail)(x, rows=len(x), runtime=self.runtime), on_cpu(x))
        messages = [event.message for event in self.of_kind("fell_back")]
        self.assertIn("OSError: no file \\udcff", messages[0])
        self.assertIn("Silent: the exception has no text", messages[1])

    def test_errors_of_the_caller_and_of_mode_gpu_do_not_fall_back(self) -> None:
        def reject(x: Any) -> Any:
            raise ValueError("not sorted")

        with self.assertRaisesRegex(ValueError, "not sorted"):
            self.twice(reject)(array.array("i"), rows=CROSSOVER, runtime=self.runtime)
        self.runtime.set_mode("gpu")
        with self.assertRaisesRegex(OSError, "the device is gone"):
            self.twice(fail_on_device)(array.array("i"), rows=1, runtime=self.runtime)
        self.assertEqual(self.of_kind("fell_back"), [])
        self.assertEqual(len(self.of_kind("dispatched")), 2, "a run ends if its variant raises")

    def test_stage_left_open_by_a_generator_ends_with_the_run(self) -> None:
        left: list[Generator[int, None, None]] = []

        def leave(x: Any) -> Any:
            def steps() -> Generator[int, None, None]:
                with kiln.stage("open"):
                    yield 1

            left.append(steps())
            next(left[0])
            return x

        self.twice(leave)(array.array("i"), rows=CROSSOVER, runtime=self.runtime)
        self.assertEqual([event.stage for event in self.of_kind("stage_finished")], ["open"])
        left[0].close()
        self.stream.synchronize()
        self.assertEqual(self.of_kind("synchronized")[-1].operation, "")

    def test_stage_belongs_to_the_thread_of_its_run(self) -> None:
        errors: list[BaseException] = []

        def on_another_thread(function: Any) -> None:
            def call() -> None:
                try:
                    function()
                except kiln.InvalidArgument as error:
                    errors.append(error)

            other = threading.Thread(target=call)
            other.start()
            other.join()

        def leave(x: Any) -> Any:
            ended = kiln.stage("ended elsewhere").__enter__()
            on_another_thread(lambda: ended.__exit__(None, None, None))
            dropped = [kiln.stage("dropped elsewhere").__enter__()]
            on_another_thread(dropped.clear)
            self.stream.synchronize()
            return x

        for _ in range(20):
            self.twice(leave)(array.array("i"), rows=CROSSOVER, runtime=self.runtime)
        self.assertEqual(len(errors), 20)
        self.assertIn("another thread began it", str(errors[0]))
        self.assertEqual(self.of_kind("synchronized")[0].stage, "dropped elsewhere")
        finished = [event.stage for event in self.of_kind("stage_finished")]
        self.assertEqual(finished, ["dropped elsewhere", "ended elsewhere"] * 20, "the run ends its stages")
        self.stream.synchronize()
        self.assertEqual(self.of_kind("synchronized")[-1].operation, "")

    def test_run_dropped_on_another_thread_leaves_its_stages(self) -> None:
        script = """
            import threading, kiln
            from kiln import _kiln, runtime
            def variant(): ...
            one = runtime.Variant(variant, backend="cpu", robustness="exact", determinism="deterministic")
            operation = runtime.Operation("left", precision="metric", variants=[one])
            runs = [_kiln._begin_dispatch(runtime.shared, operation, 1, "host", None)]
            stages = [runs[0].begin_stage("open", None, False)]
            other = threading.Thread(target=lambda: (stages.clear(), runs.clear()))
            other.start()
            other.join()
            with kiln.stage("next"):
                for _ in range(100):
                    operation(rows=1)
            print("done")
            """
        done = support.run(script)
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0), done.stderr)

    def test_rewrite_is_an_event_and_can_be_off(self) -> None:
        first, second = self.twice(), self.twice()
        self.assertTrue(self.runtime.should_rewrite("twice of nothing", first, None, rows=0))
        self.assertTrue(self.runtime.should_rewrite("twice again", first, second, rows=3))
        self.assertEqual([event.message for event in self.of_kind("rewritten")], ["twice of nothing", "twice again"])
        self.runtime.set_rewrites(False)
        self.assertFalse(self.runtime.should_rewrite("twice again", first, second, rows=3))
        self.assertEqual(len(self.of_kind("rewritten")), 2)


class Workflows(Case):
    def test_workflow_decides_once_and_at_chunks(self) -> None:
        operation = self.twice()
        x = array.array("i", [1, 2])
        with runtime.Workflow("test.flow", [operation], rows=CROSSOVER, runtime=self.runtime) as workflow:
            first = workflow.decision
            self.assertEqual(first.selected, "opencl")
            self.assertEqual(operation(x, rows=2, runtime=self.runtime), on_cpu(x))
            workflow.next_chunk(rows=1)
            self.assertEqual(workflow.decision.selected, "cpu")
            operation(x, rows=CROSSOVER, runtime=self.runtime)
        self.assertEqual([event.selected for event in self.of_kind("dispatched")], ["opencl", "cpu"])
        self.assertEqual(len(self.of_kind("decided")), 2)
        with self.assertRaisesRegex(RuntimeError, "not entered"):
            workflow.next_chunk(rows=1)

    def test_workflow_takes_operations_only(self) -> None:
        for wrong in (None, on_cpu):
            with self.assertRaisesRegex(TypeError, "must be a kiln.runtime.Operation, not (NoneType|function)"):
                runtime.Workflow("test.flow", [wrong], rows=5, runtime=self.runtime)  # type: ignore[list-item]
        with self.assertRaises(TypeError):
            _kiln._begin_workflow(self.runtime, "test.flow", [None], 5, "host", None)  # type: ignore[list-item]

    def test_chunk_cannot_end_inside_a_run(self) -> None:
        flow = runtime.Workflow("test.flow", [self.twice()], rows=CROSSOVER, runtime=self.runtime)

        def inside(x: Any) -> Any:
            flow.next_chunk(rows=1)

        with flow, self.assertRaisesRegex(kiln.InvalidArgument, "between its runs"):
            self.twice(inside)(array.array("i"), rows=1, runtime=self.runtime)


if __name__ == "__main__":
    unittest.main()
