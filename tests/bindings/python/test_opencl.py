# SPDX-License-Identifier: Apache-2.0
"""Kernels that really run on PoCL: requests, gets, launches, memory, coroutines, errors."""

from __future__ import annotations

import array
import asyncio
import copy
import ctypes
import pathlib
import pickle
import unittest
from typing import Any

import support

support.private_cache()

import kiln  # noqa: E402
import numpy  # noqa: E402

SAXPY = kiln.Unit.opencl(
    "saxpy.cl",
    "kernel void saxpy(float a, global const float* x, global float* y) { y[get_global_id(0)] += a * x[get_global_id(0)]; }",
    entries=["saxpy"],
)
WHOLE = kiln.Unit.opencl(
    "whole.cl",
    """kernel void fill(global long* to, long value, local int* scratch) {
         scratch[get_local_id(0)] = 1;
         barrier(CLK_LOCAL_MEM_FENCE);
         to[get_global_id(0)] = value + scratch[get_local_id(0)];
       }
       kernel void other(global int* to) { to[0] = 7; }""",
    entries=["fill", "other"],
)
BROKEN = kiln.Unit.opencl("broken.cl", "kernel void f(global int* x) {\n  x[0] = undefined_name;\n}\n", entries="f")
kiln.request_warmup([SAXPY, WHOLE, BROKEN])


class OpenCl(unittest.TestCase):
    stream: kiln.Stream

    @classmethod
    def setUpClass(cls) -> None:
        cls.stream = kiln.shared.stream("opencl")

    def test_kernel_uses_numpy_memory_without_copy(self) -> None:
        kernel = kiln.get(SAXPY, timeout=support.PATIENT)
        x, y = numpy.full(1024, 2, numpy.float32), numpy.ones(1024, numpy.float32)
        on_x, on_y = self.stream.copy_of(x), self.stream.copy_of(y)
        kernel.launch(3.0, on_x, on_y, grid=16, block=(64,), stream=self.stream)
        self.assertIs(self.stream.download(on_y, y), y)
        self.assertTrue((y == 7).all())
        self.assertEqual((kernel.name, kernel.unit), ("saxpy", SAXPY))
        self.assertNotEqual(kernel.handle, 0)
        self.assertEqual(kernel.handle, kernel.function)
        self.assertGreater(len(kernel.binary), 100)
        self.assertGreater(kernel.occupancy().block_size, 0)
        with self.assertRaises(kiln.Unsupported):
            kernel.cubin

    def test_arguments_can_be_typed_values_and_local_memory(self) -> None:
        kernel = kiln.get(WHOLE, "fill", timeout=support.PATIENT)
        memory = self.stream.allocate(8 * 8)
        for value in (numpy.int64(41), ctypes.c_int64(41), (41).to_bytes(8, "little"), 2**40):
            kernel.launch(memory, value, kiln.LocalMemory(32), grid=1, block=8, stream=self.stream)
            result = array.array("q", self.stream.download(memory))
            self.assertEqual(set(result), {(value if value == 2**40 else 41) + 1})
        kiln.get(WHOLE, "other").launch(memory, grid=1, block=1, stream=self.stream.handle)
        self.assertEqual(numpy.frombuffer(self.stream.download(memory), numpy.int32)[0], 7)

    def test_parameter_types_are_checked(self) -> None:
        kernel = kiln.get(SAXPY, timeout=support.PATIENT)
        self.assertEqual([str(one) for one in kernel.parameters], ["float a", "global float* x", "global float* y"])
        floats, doubles = self.stream.copy_of(numpy.ones(4, numpy.float32)), self.stream.copy_of(numpy.ones(4))
        begin = "cannot launch saxpy: argument "
        wrong: list[tuple[tuple[Any, ...], str]] = [
            ((3, floats, floats), "0 is the int 3, but parameter 'a' is 'float'; write 3.0"),
            ((numpy.float64(3), floats, floats), "0 is a float64 of 8 bytes, but parameter 'a' is 'float'; write numpy.float32(…)"),
            ((3.0, doubles, floats), "1 is a Buffer of float64, but parameter 'x' is 'global float*'; convert the array"),
            ((3.0, 3.0, floats), "1 is the float 3.0, but parameter 'x' is 'global float*'; write an array"),
            ((3.0, kiln.LocalMemory(4), floats), "1 is a LocalMemory, but parameter 'x' is 'global float*'; only"),
        ]
        for arguments, message in wrong:
            with self.subTest(message), self.assertRaises(TypeError) as caught:
                kernel.launch(*arguments, grid=1, block=4, stream=self.stream)
            self.assertIn(begin + message, str(caught.exception))
        self.assertIn("<td>0</td><td>a</td><td>float</td><td>4</td>", kernel._repr_html_())
        self.assertIn("saxpy(float a, global float* x, global float* y)", repr(kernel))
        fill = kiln.get(WHOLE, "fill", timeout=support.PATIENT)
        memory = self.stream.allocate(8, "int64")
        for arguments, message in (
            ((memory, 1.5, kiln.LocalMemory(32)), "1 is the float 1.5, but parameter 'value' is 'long'; write int(1.5)"),
            ((memory, 41, 32), "2 is the int 32, but parameter 'scratch' is 'local int*'; write kiln.LocalMemory(32)"),
        ):
            with self.subTest(message), self.assertRaises(TypeError) as caught:
                fill.launch(*arguments, grid=1, block=8, stream=self.stream)
            self.assertIn("cannot launch fill: argument " + message, str(caught.exception))
        fill.launch(memory, 41, kiln.LocalMemory(32), grid=1, block=8, stream=self.stream)  # 41 has 8 bytes here
        self.assertEqual(self.stream.to_numpy(memory).tolist(), [42] * 8)

    def test_numpy_arrays_in_and_out(self) -> None:
        kernel = kiln.get(SAXPY, timeout=support.PATIENT)
        x, y = self.stream.copy_of(numpy.full((4, 8), 2, numpy.float32)), self.stream.allocate((4, 8), numpy.float32)
        self.stream.upload(y, numpy.ones((4, 8), numpy.float32))
        kernel.launch(3.0, x, y, grid=1, block=32, stream=self.stream)
        result = self.stream.to_numpy(y)
        self.assertEqual((result.shape, result.dtype, set(result.flat)), ((4, 8), numpy.float32, {7.0}))
        with self.assertRaisesRegex(TypeError, "elements of type float64 and the buffer of type float32; convert"):
            self.stream.upload(y, numpy.ones((2, 8)))
        with self.assertRaisesRegex(TypeError, "elements of type int32 and the buffer of type float32"):
            self.stream.download(y, numpy.ones(32, numpy.int32))
        with self.assertRaisesRegex(TypeError, "a number of bytes, or a shape and a dtype"):
            self.stream.allocate((4, 8))
        structures = self.stream.copy_of(numpy.zeros(3, [("a", "f4"), ("b", "i8")]))
        self.assertEqual((structures.dtype, structures.shape), ("|u1", (36,)))

    def test_unknown_backend_is_rejected_with_the_names(self) -> None:
        with self.assertRaisesRegex(ValueError, "cuda or opencl"):
            kiln.shared.stream("abacus")  # type: ignore[arg-type]

    def test_invalid_argument_is_rejected_with_reason(self) -> None:
        kernel = kiln.get(SAXPY, timeout=support.PATIENT)
        memory = self.stream.allocate(64)
        with self.assertRaisesRegex(TypeError, "argument 1 is host memory"):
            kernel.launch(3.0, numpy.ones(4), memory, grid=1, block=4, stream=self.stream)
        with self.assertRaisesRegex(TypeError, "argument 0 is of type object"):
            kernel.launch(object(), memory, memory, grid=1, block=4, stream=self.stream)
        with self.assertRaises(kiln.InvalidArgument):
            kernel.launch(3.0, memory, grid=1, block=4, stream=self.stream)
        with self.assertRaisesRegex(TypeError, "a launch needs a stream"):
            kernel.launch(3.0, memory, memory, grid=1, block=4, stream=None)
        for missing in ("grid", "block", "stream"):
            given = {"grid": 1, "block": 4, "stream": self.stream}
            del given[missing]
            with self.assertRaises(TypeError):
                kernel.launch(3.0, memory, memory, **given)
        with self.assertRaisesRegex(kiln.InvalidArgument, "grid"):
            kernel.launch(3.0, memory, memory, grid=0, block=4, stream=self.stream)
        with self.assertRaisesRegex(kiln.InvalidArgument, "queue"):
            kernel.launch(3.0, memory, memory, grid=1, block=4, stream=0)
        with self.assertRaisesRegex(TypeError, "a stream must be"):
            kernel.launch(3.0, memory, memory, grid=1, block=4, stream="stream")
        with self.assertRaises((TypeError, BufferError, ValueError)):
            self.stream.copy_of(numpy.ones((4, 4))[:, ::2])
        with self.assertRaises((TypeError, BufferError)):
            self.stream.download(memory, b"only to be read")
        with self.assertRaisesRegex(ValueError, "the buffer 64"):
            self.stream.upload(memory, bytes(65))

    def test_cuda_streams_and_arrays_are_rejected(self) -> None:
        class CudaArray:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (1 << 40, False), "version": 3}

        class CudaStream:
            def __cuda_stream__(self) -> tuple[int, int]:
                return 0, 1 << 40

        kernel = kiln.get(SAXPY, timeout=support.PATIENT)
        memory = self.stream.copy_of(numpy.ones(4, numpy.float32))
        for stream in (0, kiln.default_stream, kiln.per_thread_stream):
            with self.assertRaisesRegex(kiln.InvalidArgument, "OpenCL has no default stream"):
                kernel.launch(3.0, memory, memory, grid=1, block=4, stream=stream)
        with self.assertRaisesRegex(TypeError, r"the stream for CUDA; pass session.stream\('opencl'\)"):
            kernel.launch(3.0, memory, memory, grid=1, block=4, stream=CudaStream())
        with self.assertRaisesRegex(TypeError, "argument 1 is a CudaArray of CUDA, but the kernel is for OpenCL; copy"):
            kernel.launch(3.0, CudaArray(), memory, grid=1, block=4, stream=self.stream)
        self.assertFalse(hasattr(memory, "__cuda_array_interface__"))

    def test_sizes_are_integers_in_range(self) -> None:
        kernel = kiln.get(SAXPY, timeout=support.PATIENT)
        memory = self.stream.copy_of(numpy.ones(4, numpy.float32))
        kernel.launch(3.0, memory, memory, grid=numpy.int64(1), block=(numpy.int32(4), 1), stream=self.stream)
        wrong: list[tuple[Any, type[Exception], str]] = [
            (-1, ValueError, "grid must be from 0 to 4294967295, not -1"),
            ((1, 2**33), ValueError, "grid must be from 0 to 4294967295, not 8589934592"),
            (1.0, TypeError, "grid must be an integer or up to three of them, not float"),
            ("1", TypeError, "grid must be an integer or up to three of them, not str"),
            ((1.0,), TypeError, "grid must be an integer, not float"),
        ]
        for grid, kind, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                kernel.launch(3.0, memory, memory, grid=grid, block=4, stream=self.stream)
        with self.assertRaisesRegex(ValueError, "a stream must be from 0 to"):
            kernel.launch(3.0, memory, memory, grid=1, block=4, stream=-1)
        with self.assertRaisesRegex(ValueError, "the size of a buffer must be from 0 to"):
            self.stream.allocate((-1, 4), numpy.float32)
        with self.assertRaisesRegex(kiln.InvalidArgument, "it takes 3 arguments, but the call has 2; pass .float a, global"):
            kernel.launch(3.0, memory, grid=1, block=4, stream=self.stream)

    def test_arrays_without_usable_bytes_are_rejected(self) -> None:
        for data, message in (
            (numpy.array(["a", None], object), "this ndarray holds Python objects; convert it"),
            (numpy.arange(3, dtype=">f4"), "this ndarray holds numbers in big-endian byte order; convert it"),
            (numpy.ones((4, 4))[:, ::2], r"this ndarray is not contiguous; pass numpy.ascontiguousarray\("),
        ):
            with self.subTest(message), self.assertRaisesRegex(TypeError, message):
                self.stream.copy_of(data)
        with self.assertRaisesRegex(TypeError, r"use stream.to_numpy\(buffer\)"):
            numpy.asarray(self.stream.allocate(4))

    def test_units_can_be_copied_and_pickled(self) -> None:
        unit = kiln.Unit.opencl(
            "whole.cl",
            "kernel void f(global int* x) {}",
            entries=["f"],
            options=["-DN=1"],
            include_roots=["/usr/include", ("/opt", "/opt/stamp")],
            headers={"own.h": "//"},
            preamble="// before\n",
            served_by="acme/*",
        )
        linked = kiln.Unit.link("linked", [kiln.LinkPart.ptx("part", b"bytes")], entries=["f"])
        for one in (unit, linked, SAXPY, kiln.Unit.cccl("exclusive_scan_i32")):
            for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
                self.assertEqual((one, one.key, repr(one)), (other, other.key, repr(other)))
        function, (data, served_by) = unit.__reduce__()  # type: ignore[misc]
        with self.assertRaisesRegex(ValueError, "cannot unpickle a kiln.Unit"):
            function(data[:-1], served_by)

    def test_coroutine_rejects_what_get_rejects(self) -> None:
        with self.assertRaisesRegex(TypeError, "unit must be a kiln.Unit, not str"):
            asyncio.run(kiln.get_async("saxpy.cl"))  # type: ignore[arg-type]
        fresh = kiln.Unit.opencl("never.cl", "kernel void never(global int* x) { x[0] = 3; }", entries="never")
        with self.assertRaises(kiln.TimedOut):
            asyncio.run(asyncio.wait_for(kiln.get_async(fresh, timeout=float("nan")), 0.5))

    def test_include_roots_can_be_one_path(self) -> None:
        one = kiln.Unit.cuda("k.cu", "", include_roots="/usr/include")
        self.assertEqual(one, kiln.Unit.cuda("k.cu", "", include_roots=["/usr/include"]))
        self.assertEqual(one, kiln.Unit.cuda("k.cu", "", include_roots=pathlib.Path("/usr/include")))

    def test_session_names_the_argument_of_a_wrong_type(self) -> None:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"settings": 5}, "settings must be a dict, not int"),
            ({"settings": {5: 5}}, "the name of a setting must be a string, not int"),
            ({"locked": [5]}, "the name of a setting must be a string, not int"),
            ({"on_event": 5}, "on_event must be a function, not int"),
            ({"opencl": 5}, "opencl must be a pair of numbers: cl_context and cl_device_id, not int"),
            ({"opencl": ("x", 1)}, "opencl must be a pair of numbers: cl_context and cl_device_id, not str"),
        ]
        for arguments, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(TypeError, message):
                kiln.Session(**arguments)

    def test_tensor_memory_by_dlpack(self) -> None:
        class Tensor:  # like a host tensor of torch: DLPack and no buffer protocol
            def __init__(self, of: numpy.ndarray) -> None:
                self.of = of

            def __dlpack__(self, **more: object) -> object:
                return self.of.__dlpack__()

            def __dlpack_device__(self) -> tuple[int, int]:
                return self.of.__dlpack_device__()

        data = numpy.arange(12, dtype=numpy.int32).reshape(3, 4)
        memory = self.stream.copy_of(Tensor(data))
        self.assertEqual(self.stream.download(memory), data.tobytes())
        with self.assertRaisesRegex(TypeError, "not contiguous"):
            self.stream.copy_of(Tensor(data[:, ::2]))

    def test_compile_error_shows_source_line(self) -> None:
        with self.assertRaises(kiln.CompileError) as caught:
            kiln.get(BROKEN, timeout=support.PATIENT)
        error = caught.exception
        self.assertEqual((error.code, error.line), ("compile_failed", 2))
        self.assertIn("undefined_name", error.log)
        self.assertIn("> 2 |   x[0] = undefined_name;\n    |          ^", str(error))

    def test_coroutines_wait_concurrently(self) -> None:
        sleeps = 0

        async def count() -> None:
            nonlocal sleeps
            while True:
                await asyncio.sleep(0.001)
                sleeps += 1

        async def both() -> list[kiln.Kernel]:
            counting = asyncio.create_task(count())
            unit = kiln.Unit.opencl("later.cl", "kernel void later(global int* x) { x[0] = 3; }", entries="later")
            gets = [kiln.get_async(unit, timeout=support.PATIENT), kiln.get_async(SAXPY, timeout=support.PATIENT)]
            kernels = await asyncio.gather(*gets)
            counting.cancel()
            with self.assertRaises(kiln.CompileError):
                await kiln.get_async(BROKEN, timeout=support.PATIENT)
            return kernels

        kernels = asyncio.run(both())
        self.assertEqual([kernel.name for kernel in kernels], ["later", "saxpy"])
        self.assertGreater(sleeps, 5)

    def test_coroutine_times_out(self) -> None:
        async def impatient() -> None:
            unit = kiln.Unit.opencl("never.cl", "kernel void never(global int* x) { x[0] = 4; }", entries="never")
            await kiln.get_async(unit, timeout=0.0)

        with self.assertRaises(TimeoutError):
            asyncio.run(impatient())

    def test_plan_returns_units_not_ready(self) -> None:
        plan = kiln.WarmupPlan("pipeline").stage(SAXPY, WHOLE).stage([BROKEN])
        not_ready = plan.ensure_warm(timeout=support.PATIENT)
        self.assertEqual([one.unit for one in not_ready], ["broken.cl"])

    def test_status_counts_match_list(self) -> None:
        kiln.WarmupPlan("all").stage(SAXPY, WHOLE, BROKEN).ensure_warm(timeout=support.PATIENT)
        status = kiln.status()
        states = {unit.unit: unit.state for unit in status.units}
        self.assertEqual((states["saxpy.cl"], states["broken.cl"]), ("ready", "failed"))
        self.assertEqual(status.submitted, len(status.units))
        self.assertIn("saxpy.cl", str(status))

    def test_new_session_emits_events_and_finds_cached_code(self) -> None:
        kiln.get(SAXPY, timeout=support.PATIENT)
        events: list[kiln.Event] = []
        session = kiln.Session({"jobs": 0}, on_event=events.append, collect_metrics=True, record_undeclared=True)
        kernel = session.handle(SAXPY).get(timeout=support.PATIENT)
        self.assertEqual(kernel.name, "saxpy")
        self.assertEqual((session.status().compiled, session.status().cached), (0, 1))
        kinds = {event.kind for event in events}
        self.assertTrue({"hit", "loaded"} <= kinds, kinds)
        self.assertIn("kiln_", session.metrics())
        self.assertIn("test_opencl.py", session.undeclared()[0].caller)
        stream = session.stream("opencl")
        del session  # the kernel keeps the session alive
        kernel.launch(1.0, stream.allocate(4), stream.allocate(4), grid=1, block=1, stream=stream)
        launched = [event for event in events if event.kind == "launched"][-1]
        self.assertEqual((launched.kind, launched.grid_blocks, launched.block_threads), ("launched", 1, 1))
        self.assertGreater(launched.suggested_block_threads, 0)
        self.assertEqual((launched.shared_bytes, launched.pinned, launched.details), (0, None, {}))

    def test_raising_event_callback_is_ignored(self) -> None:
        def raises(event: kiln.Event) -> None:
            raise RuntimeError("not today")

        import sys

        seen = []
        sys.unraisablehook = lambda unraisable: seen.append(unraisable.exc_value)
        try:
            kiln.Session(on_event=raises).get(SAXPY, timeout=support.PATIENT)
        finally:
            sys.unraisablehook = sys.__unraisablehook__
        self.assertTrue(seen)


if __name__ == "__main__":
    unittest.main()
