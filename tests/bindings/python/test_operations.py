# SPDX-License-Identifier: Apache-2.0
"""Declared operations: events of a thread carry the operation, the stage and the purpose. Launches run on PoCL."""

from __future__ import annotations

import functools
import threading
import unittest
from collections.abc import Callable, Generator

import support

support.private_cache()

import kiln  # noqa: E402

UNIT = kiln.Unit.opencl("one.cl", "kernel void one(global int* x) { x[0] = 1; }", entries="one")


class Operations(unittest.TestCase):
    session: kiln.Session
    stream: kiln.Stream
    events: list[kiln.Event]

    @classmethod
    def setUpClass(cls) -> None:
        cls.events = []
        cls.session = kiln.Session(on_event=cls.events.append)
        cls.stream = cls.session.stream("opencl")

    def setUp(self) -> None:
        self.events.clear()

    def wait(self) -> kiln.Event:
        """Emits an event and returns it."""
        self.stream.synchronize()
        return [event for event in self.events if event.kind == "synchronized"][-1]

    def test_events_carry_operation_stage_and_purpose(self) -> None:
        with kiln.operation("test.join", rows=7, residency="device"):
            with kiln.stage("refine"), kiln.purpose("materialize"):
                event = self.wait()
            after = self.wait()
        self.assertEqual((event.operation, event.stage, event.rows), ("test.join", "refine", 7))
        self.assertEqual((event.residency, event.purpose), ("device", "materialize"))
        self.assertNotEqual(event.dispatch, 0)
        self.assertEqual((after.stage, after.purpose, after.dispatch), ("", "unspecified", event.dispatch))
        self.assertEqual((self.wait().operation, self.wait().dispatch), ("", 0))

    def test_operations_nest_and_each_run_has_its_own_number(self) -> None:
        with kiln.operation("outer"):
            outer = self.wait()
            with kiln.operation("inner"):
                inner = self.wait()
            self.assertEqual(self.wait().dispatch, outer.dispatch)
        with kiln.operation("outer"):
            again = self.wait()
        self.assertEqual((outer.operation, inner.operation), ("outer", "inner"))
        self.assertEqual(len({outer.dispatch, inner.dispatch, again.dispatch}), 3)

    def test_exception_ends_the_scope_and_passes(self) -> None:
        with self.assertRaises(KeyError):
            with kiln.operation("fails"), kiln.stage("here"):
                raise KeyError("x")
        self.assertEqual(self.wait().operation, "")

    def test_decorator_counts_rows_of_each_call(self) -> None:
        @kiln.operation("test.sum", rows=lambda items: len(items))
        def total(items: list[int]) -> int:
            """Adds."""
            self.seen = self.wait()
            return sum(items)

        @kiln.operation("test.none")
        def nothing() -> None:
            self.seen = self.wait()

        self.assertEqual(total([1, 2, 3]), 6)
        first = self.seen
        self.assertEqual((first.operation, first.rows), ("test.sum", 3))
        self.assertEqual(total([1]), 1)
        self.assertEqual(self.seen.rows, 1)
        self.assertNotEqual(self.seen.dispatch, first.dispatch)
        self.assertEqual((total.__name__, total.__doc__), ("total", "Adds."))
        nothing()
        self.assertEqual((self.seen.operation, self.seen.rows), ("test.none", 0))

    def test_decorator_rejects_functions_whose_body_runs_later(self) -> None:
        async def coroutine() -> None: ...

        def generator() -> Generator[int, None, None]:
            yield 1

        class Later:
            async def __call__(self) -> None: ...

        later: list[Callable[..., object]] = [coroutine, generator, functools.partial(generator, 1), Later()]
        for function in [*later, functools.partial(Later())]:
            with self.subTest(function), self.assertRaisesRegex(TypeError, "generator or a coroutine"):
                kiln.operation("later")(function)
        self.assertEqual(kiln.operation("now")(functools.partial(max, 1))(2), 2)
        self.assertEqual(kiln.operation("now")(Later).__name__, "Later", "a class runs when called")
        with self.assertRaisesRegex(TypeError, "only if operation is a decorator"):
            with kiln.operation("rows", rows=lambda: 1):
                pass

    def test_stage_takes_a_stream_only(self) -> None:
        with self.assertRaisesRegex(TypeError, "stream must be a kiln.Stream or None, not int"):
            kiln.stage("wrong", stream=3)  # type: ignore[arg-type]

    def test_scope_of_generator_can_end_before_an_inner_one(self) -> None:
        def steps() -> Generator[int, None, None]:
            with kiln.operation("generator"):
                yield 1

        with kiln.operation("program"):
            items = steps()
            next(items)
            with kiln.operation("consumer"):
                items.close()
                self.assertEqual(self.wait().operation, "consumer")
            self.assertEqual(self.wait().operation, "program")
        self.assertEqual(self.wait().operation, "")

    def test_scope_belongs_to_its_thread(self) -> None:
        scope = kiln.operation("mine")
        errors: list[BaseException] = []

        def end() -> None:
            self.stream.synchronize()
            try:
                scope.__exit__(None, None, None)
            except kiln.InvalidArgument as error:
                errors.append(error)

        with scope:
            other = threading.Thread(target=end)
            other.start()
            other.join()
            self.assertEqual(self.events[-1].operation, "", "another thread is not in the operation")
            self.assertEqual(self.wait().operation, "mine")
            with self.assertRaisesRegex(RuntimeError, "entered already"):
                scope.__enter__()
        self.assertEqual(len(errors), 1)
        self.assertIn("another thread began it", str(errors[0]))
        self.assertEqual(self.wait().operation, "")

    def test_invalid_values_are_rejected_with_the_valid_ones(self) -> None:
        for scope in (kiln.operation("x", residency="nowhere"), kiln.purpose("fun")):  # type: ignore[arg-type]
            with self.assertRaisesRegex(ValueError, "must be one of"):
                scope.__enter__()
        for empty in (kiln.operation(""), kiln.stage("")):
            with self.assertRaisesRegex(ValueError, "must not be empty"):
                empty.__enter__()
        with self.assertRaises(TypeError):
            kiln.operation("x", rows=-1).__enter__()

    def test_launch_by_other_means_can_be_counted(self) -> None:
        kiln.count_launch()
        with kiln.operation("native"):
            kiln.count_launch()


if __name__ == "__main__":
    unittest.main()
