# SPDX-License-Identifier: Apache-2.0
"""CUDA without a device: NVRTC really compiles, cuda.core really loads the code, and the driver double replaces the
device, so that handles, streams and arguments are checked; nothing is executed."""

from __future__ import annotations

import asyncio
import gc
import os
import pathlib
import tempfile
import time
import unittest

import support

support.private_cache()

import kiln  # noqa: E402
import numpy  # noqa: E402

SCALE = kiln.Unit.cuda(
    "scale.cu",
    """template <typename T> __global__ void scale(T* x, T by, long long n) { if (threadIdx.x < n) x[threadIdx.x] *= by; }
       extern "C" __global__ void plain(const float* x, unsigned char flag, short little) {}
       """,
    entries=["scale<double>", "plain"],
    options=["-DUNUSED=1"],
)
kiln.request_warmup(SCALE, "sm_80")


class Bytes(unittest.TestCase):
    def test_need_no_device(self) -> None:
        artifact = kiln.artifact(SCALE, "sm_80", timeout=support.PATIENT)
        self.assertEqual(artifact.bytes[:4], b"\x7fELF")
        self.assertEqual((artifact.form, str(artifact.target), len(artifact)), ("cubin", "sm_80", len(artifact.bytes)))
        self.assertEqual(set(artifact.symbols), {"scale<double>", "plain"})

    def test_convert_to_cuda_core_object_code(self) -> None:
        try:
            from cuda.core import ObjectCode
        except ImportError as missing:
            self.skipTest(f"cuda-core is not installed: {missing}")
        for target, kind in (("sm_80", "cubin"), ("compute_80", "ptx"), ("lto_80", "ltoir")):
            artifact = kiln.artifact(SCALE, target, timeout=support.PATIENT)
            code = artifact.to_object_code()
            self.assertIsInstance(code, ObjectCode)
            self.assertEqual((code.code_type, bytes(code.code)), (kind, artifact.bytes))
            self.assertEqual(code.symbol_mapping, artifact.symbols)

    def test_nvrtc_error_shows_source_line(self) -> None:
        unit = kiln.Unit.cuda("bad.cu", "// fine\n__global__ void k(int* x) {\n\t*x = y;\n}\n", entries=["k"])
        with self.assertRaises(kiln.CompileError) as caught:
            kiln.artifact(unit, "sm_80", timeout=support.PATIENT)
        self.assertEqual(caught.exception.line, 3)
        self.assertIn("> 3 | \t*x = y;", str(caught.exception))

    def test_explain_says_why_a_unit_is_a_miss(self) -> None:
        def unit(factor: int) -> kiln.Unit:
            return kiln.Unit.cuda("why.cu", f"__global__ void k(int* x) {{ *x *= {factor}; }}", entries=["k"])

        resolved = kiln.shared.resolve(unit(2), "sm_80", timeout=support.PATIENT)
        self.assertEqual((resolved.origin, resolved.uncacheable_reason), ("compiled", ""))
        self.assertGreater(kiln.shared.recorded_cost_ms(unit(2), "sm_80") or 0, 0)
        hit = kiln.shared.explain(unit(2), "sm_80")
        assert hit.artifact is not None
        self.assertEqual((hit.hit, hit.artifact.key, hit.request_key), (True, resolved.key, resolved.request_key))
        miss = kiln.shared.explain(unit(3), "sm_80")
        assert miss.nearest is not None
        self.assertEqual((miss.hit, miss.artifact, miss.nearest.key), (False, None, resolved.key))
        self.assertEqual([difference.input for difference in miss.differences], ["source"])
        self.assertIsNotNone(kiln.shared.recorded_cost_ms(unit(4), "sm_80"))  # that of the unit before an edit
        self.assertIsNone(kiln.shared.recorded_cost_ms(unit(2), "sm_90"))
        self.assertTrue(kiln.shared.wait_for_uploads(0))

    def test_invalid_target_is_rejected(self) -> None:
        with self.assertRaises(ValueError):
            kiln.artifact(SCALE, "sm_eighty")
        with self.assertRaises(TypeError):
            kiln.artifact(SCALE, 80)  # type: ignore[arg-type]

    def test_linked_and_cccl_units(self) -> None:
        caller = kiln.Unit.cuda("caller.cu", "extern __device__ int f(); __global__ void k(int* x) { *x = f(); }", entries="k")
        callee = kiln.Unit.cuda("callee.cu", "__device__ int f() { return 1; }")
        linked = kiln.Unit.link("both", [caller, kiln.LinkPart.unit(callee)], entries="k")
        self.assertEqual(linked.kind, "link")
        self.assertEqual(kiln.Unit.cccl("radix_sort_u64_i32").kind, "cccl")
        with self.assertRaisesRegex(kiln.InvalidArgument, "radix_sort_u64_i32"):
            kiln.Unit.cccl("bubble_sort")

    def test_equal_units_compare_equal(self) -> None:
        def made(source: str = "int x;") -> kiln.Unit:
            return kiln.Unit.cuda("v.cu", source, entries="k", headers={"a.h": "int a;"}, include_roots=[os.curdir])

        self.assertEqual(made(), made())
        self.assertEqual(len({made(), made(), made("int y;")}), 2)
        self.assertEqual(made().entries, ["k"])
        self.assertNotEqual(made(), "v.cu")


class Refresh(unittest.TestCase):
    def test_changed_header_is_detected_after_refresh(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder, "factor.h")
            header.write_text("#define FACTOR 3\n")
            unit = kiln.Unit.cuda(
                "factor.cu",
                '#include "factor.h"\nextern "C" __global__ void k(int* x) { *x = FACTOR; }',
                entries="k",
                include_roots=[folder],
            )
            session = kiln.Session()
            before = session.artifact(unit, "compute_80", timeout=support.PATIENT).bytes
            header.write_text("#define FACTOR 5\n")
            time.sleep(0.05)
            self.assertEqual(session.artifact(unit, "compute_80", timeout=support.PATIENT).bytes, before)
            session.refresh(unit)
            self.assertNotEqual(session.artifact(unit, "compute_80", timeout=support.PATIENT).bytes, before)
            session.release([unit])
            status = session.status(all=True)
            self.assertEqual((status.submitted, status.released), (0, 1))
            self.assertNotEqual(session.artifact(unit, "compute_80", timeout=support.PATIENT).bytes, before)


class Closing(unittest.TestCase):
    def test_with_statement_closes_the_session(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "trace.json")
            with kiln.Session({"trace": trace}) as session:
                self.assertTrue(repr(session).startswith("<kiln.Session: "), repr(session))
                artifact = session.artifact(SCALE, "sm_80", timeout=support.PATIENT)
            self.assertGreater(len(artifact), 0)
            self.assertTrue(trace.exists())
        with self.assertRaisesRegex(kiln.InvalidArgument, "the session was closed"):
            session.status()
        session.close()
        self.assertEqual(repr(session), "<kiln.Session, closed>")
        with self.assertRaisesRegex(kiln.InvalidArgument, "cannot close kiln.shared"):
            kiln.shared.close()
        with self.assertRaises(ZeroDivisionError), kiln.Session():
            1 / 0  # noqa: B018


class Async(unittest.TestCase):
    def test_artifacts_are_awaited_concurrently(self) -> None:
        def unit(factor: int) -> kiln.Unit:
            return kiln.Unit.cuda("async.cu", f"__global__ void k(int* x) {{ *x *= {factor}; }}", entries=["k"])

        async def both() -> list[kiln.Artifact]:
            waits = [kiln.artifact_async(unit(i), "sm_80", timeout=support.PATIENT) for i in (7, 8)]
            artifacts = await asyncio.gather(*waits)
            with self.assertRaises(TimeoutError):
                await kiln.artifact_async(unit(9), "sm_80", timeout=0.0)
            with self.assertRaises(kiln.CompileError):
                bad = kiln.Unit.cuda("bad.cu", "nonsense", entries=["k"])
                await kiln.artifact_async(bad, "sm_80", timeout=support.PATIENT)
            with self.assertRaises(TypeError):
                await kiln.artifact_async(unit(7), None)  # type: ignore[arg-type]
            return artifacts

        artifacts = asyncio.run(both())
        self.assertEqual([one.bytes[:4] for one in artifacts], [b"\x7fELF"] * 2)

    def test_failure_of_a_slow_compile_ends_the_wait(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder, "compiler")
            compiler.write_text('#!/bin/sh\necho run >> "$0.runs"\nsleep 0.3\nexit 1\n')
            compiler.chmod(0o755)
            unit = kiln.Unit.command("fails.cu", "", [str(compiler), "{source}", "{output}"])
            session = kiln.Session()

            async def several() -> list[kiln.Artifact | BaseException]:
                waits = [session.artifact_async(unit, "sm_80", timeout=support.PATIENT) for _ in range(3)]
                return await asyncio.gather(*waits, return_exceptions=True)

            errors = asyncio.run(several())
            for error in errors:
                self.assertIsInstance(error, kiln.Error)
                self.assertNotIsInstance(error, kiln.TimedOut)
                self.assertIn("fails.cu", str(error))
            self.assertEqual(pathlib.Path(folder, "compiler.runs").read_text(), "run\n")


class Manifest(unittest.TestCase):
    def test_file_makes_the_unit_of_the_manifest(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "k.cu")
            file.write_text('#include "k.h"\nextern "C" __global__ void k() {}')
            pathlib.Path(folder, "k.cl").write_text("kernel void k() {}")
            manifest = pathlib.Path(folder, "kiln.toml")
            manifest.write_text('[[unit]]\nsource = "k.cu"\nentries = ["k"]\noptions = ["-DX=1"]\n')
            made = kiln.Unit.from_file(file, entries="k", options=["-DX=1"])
            self.assertEqual(made, kiln.read_manifest(manifest)["k.cu"])
            self.assertEqual((made.kind, made.name), ("cuda", "k.cu"))
            opencl = kiln.Unit.from_file(f"{folder}/k.cl", entries="k", name="other.cl")
            self.assertEqual(opencl, kiln.Unit.opencl("other.cl", "kernel void k() {}", entries="k"))
            self.assertEqual(kiln.Unit.from_file(file, kind="opencl").kind, "opencl")
            with self.assertRaisesRegex(ValueError, "one of cuda, opencl"):
                kiln.Unit.from_file(file, kind="abacus")  # type: ignore[arg-type]
            with self.assertRaisesRegex(kiln.Error, "there is no file .*none.cu"):
                kiln.Unit.from_file(f"{folder}/none.cu")

    def test_units_equal_those_written_in_python(self) -> None:
        source = 'extern "C" __global__ void k() {}'
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "k.cu").write_text(source)
            file = pathlib.Path(folder, "kiln.toml")
            file.write_text('[[unit]]\nsource = "k.cu"\nentries = ["k"]\noptions = ["-DX=1"]\n[[cccl]]\nspec = "radix_sort_u64_i32"\n')
            units = kiln.read_manifest(file)
        self.assertEqual(units["k.cu"], kiln.Unit.cuda("k.cu", source, entries="k", options="-DX=1"))
        self.assertEqual(units["radix_sort_u64_i32"], kiln.Unit.cccl("radix_sort_u64_i32"))
        self.assertEqual(len(units), 2)

    def test_two_units_cannot_have_one_name(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "f.cu").write_text("#define T float\n")
            file = pathlib.Path(folder, "kiln.toml")
            family = '[[family]]\nname = "f"\npreamble = "f.cu"\n[family.instances]\nk = "extern \\"C\\" __global__ void k() {}"\n'
            file.write_text(family + '[[unit]]\nname = "f:k"\nsource = "f.cu"\n')
            with self.assertRaisesRegex(kiln.InvalidArgument, "kiln.toml.*two are called 'f:k'"):
                kiln.read_manifest(file)

    def test_errors_name_the_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "kiln.toml")
            file.write_text("[[unit]]\nsorce = 1\n")
            with self.assertRaisesRegex(kiln.InvalidArgument, "kiln.toml: line 2.*did you mean 'source'"):
                kiln.read_manifest(file)
            with self.assertRaisesRegex(kiln.Corrupt, "kiln.toml"):
                kiln.use_bundle(file)
            with self.assertRaisesRegex(kiln.Unavailable, "app.kiln"):
                kiln.use_bundle(pathlib.Path(folder, "app.kiln"))


class Cuda:
    """A stream of another library, such as cuda.core, CuPy and PyTorch."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class Array:
    def __init__(self, memory: kiln.Buffer) -> None:
        self.__cuda_array_interface__ = memory.__cuda_array_interface__


@unittest.skipUnless(os.environ.get("KILN_FAKE_DRIVER"), "KILN_FAKE_DRIVER does not name the driver's double")
class Device(unittest.TestCase):
    session: kiln.Session

    @classmethod
    def setUpClass(cls) -> None:
        cls.session = kiln.Session({"driver": os.environ["KILN_FAKE_DRIVER"]})
        cls.session.make_current("cuda")
        cls.stream = cls.session.stream("cuda")

    def test_kernel_exposes_native_handles(self) -> None:
        kernel = self.session.get(SCALE, "scale<double>", timeout=support.PATIENT)
        self.assertNotEqual(kernel.handle, 0)
        self.assertNotEqual(kernel.function, 0)
        self.assertEqual(kernel.parameter_sizes, [8, 8, 8])
        self.assertEqual(kernel.cubin[:4], b"\x7fELF")
        self.assertEqual(kernel.cubin, kernel.artifact.bytes)
        self.assertEqual(kernel.to_object_code().symbol_mapping, kernel.artifact.symbols)

    def test_numbers_use_parameter_sizes(self) -> None:
        memory = self.stream.allocate(64)
        double = self.session.get(SCALE, "scale<double>", timeout=support.PATIENT)
        plain = self.session.get(SCALE, "plain", timeout=support.PATIENT)
        # 0 is the default stream too: the stream of CuPy unless the program selects another.
        for stream in (self.stream, Cuda(self.stream.handle), self.stream.handle, kiln.default_stream, 0, Cuda(0)):
            double.launch(memory, 2.0, 5, grid=1, block=(8, 1, 1), stream=stream)
            double.launch(Array(memory), numpy.float64(2), -(2**63), grid=(1, 1), block=8, shared_bytes=64, stream=stream)
            plain.launch(None, 255, -32768, grid=1, block=1, stream=stream)
        with self.assertRaisesRegex(ValueError, "argument 1 does not fit into the 1 bytes"):
            plain.launch(None, 256, 0, grid=1, block=1, stream=self.stream)
        with self.assertRaisesRegex(TypeError, "argument 1 is the float 1.5, but parameter 1 has 1 bytes"):
            plain.launch(None, 1.5, 0, grid=1, block=1, stream=self.stream)
        self.stream.synchronize()

    def test_opencl_streams_and_memory_are_rejected(self) -> None:
        kernel = self.session.get(SCALE, "scale<double>", timeout=support.PATIENT)
        opencl = kiln.shared.stream("opencl")
        memory, other = self.stream.copy_of(numpy.ones(8)), opencl.copy_of(numpy.ones(8))
        with self.assertRaisesRegex(TypeError, "the kernel is for CUDA and the stream for OpenCL"):
            kernel.launch(memory, 2.0, 5, grid=1, block=8, stream=opencl)
        with self.assertRaisesRegex(TypeError, "argument 0 is a Buffer of OpenCL, but the kernel is for CUDA"):
            kernel.launch(other, 2.0, 5, grid=1, block=8, stream=self.stream)
        with self.assertRaisesRegex(TypeError, "the stream is for CUDA and the buffer for OpenCL"):
            self.stream.to_numpy(other)

    def test_types_in_the_symbol_are_checked(self) -> None:
        kernel = self.session.get(SCALE, "scale<double>", timeout=support.PATIENT)
        self.assertEqual([str(one) for one in kernel.parameters], ["double*", "double", "long long"])
        self.assertEqual([one.kind for one in kernel.parameters], ["pointer", "float", "integer"])
        doubles, floats = self.stream.copy_of(numpy.ones(8)), self.stream.copy_of(numpy.ones(8, numpy.float32))
        begin = "cannot launch scale<double>: argument "
        convert = "but parameter 0 is 'double*'; convert the array to float64"
        wrong = [
            ((doubles, 2, 5), "1 is the int 2, but parameter 1 is 'double'; write 2.0"),
            ((doubles, 2.0, 5.5), "2 is the float 5.5, but parameter 2 is 'long long'; write int(5.5)"),
            ((doubles, numpy.float32(2), 5), "1 is a float32 of 4 bytes, but parameter 1 is 'double'; write numpy.float64(…)"),
            ((doubles, numpy.int64(2), 5), "1 is a int64 of 8 bytes, but parameter 1 is 'double'; write numpy.float64(…)"),
            ((doubles, None, 5), "1 is None, but parameter 1 is 'double'; write a number"),
            ((floats, 2.0, 5), f"0 is a Buffer of float32, {convert} before stream.copy_of, or pass buffer.handle if"),
            ((Array(floats), 2.0, 5), f"0 is a Array of float32, {convert}, or pass a view of it as uint8 if"),
            ((2, 2.0, 5), "0 is the int 2, but parameter 0 is 'double*'; write an array on the device"),
            ((doubles, doubles, 5), "1 is a Buffer of float64, but parameter 1 is 'double'; write a number"),
        ]
        for arguments, message in wrong:
            with self.subTest(message), self.assertRaises(TypeError) as caught:
                kernel.launch(*arguments, grid=1, block=8, stream=self.stream)
            self.assertIn(begin + message, str(caught.exception))
        raw = self.stream.copy_of(bytes(64))  # bytes can be anything, and a number can be an address: 0 of an empty tensor
        for memory in (doubles, raw, doubles.handle, floats.handle, None, 0):
            kernel.launch(memory, 2.0, 5, grid=1, block=8, stream=self.stream)
        for address in (doubles, Array(floats), None):  # an integer of 8 bytes can be a CUdeviceptr
            kernel.launch(doubles, 2.0, address, grid=1, block=8, stream=self.stream)
        self.assertIn("scale<double>(double*, double, long long)", repr(kernel))

    def test_numpy_arrays_round_trip(self) -> None:
        data = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
        memory = self.stream.copy_of(data)
        self.assertEqual((memory.dtype, memory.shape, memory.size), ("<f4", (3, 4), 48))
        interface = memory.__cuda_array_interface__
        self.assertEqual((interface["typestr"], interface["shape"]), ("<f4", (3, 4)))
        back = self.stream.to_numpy(memory)
        self.assertEqual((back.dtype, back.tolist()), (data.dtype, data.tolist()))
        self.assertEqual(repr(memory), "<kiln.Buffer of 48 bytes: float32 (3,4)>")

    def test_kernel_outlives_refresh_release_and_session(self) -> None:
        session = kiln.Session({"driver": os.environ["KILN_FAKE_DRIVER"]})
        session.make_current("cuda")
        kernel = session.get(SCALE, "plain", timeout=support.PATIENT)
        session.refresh(SCALE)
        session.release(SCALE)
        kernel.launch(None, 1, 1, grid=1, block=1, stream=kiln.default_stream)
        del session
        gc.collect()
        kernel.launch(None, 1, 1, grid=1, block=1, stream=kiln.per_thread_stream)
        self.assertEqual(kernel.name, "plain")

    def test_memory_round_trips(self) -> None:
        memory = self.stream.copy_of(b"abcdefgh")
        self.stream.upload(memory, memoryview(b"AB"))
        self.assertEqual(self.stream.download(memory), b"ABcdefgh")
        interface = memory.__cuda_array_interface__
        self.assertEqual((interface["shape"], interface["data"][0]), ((8,), memory.handle))
        memory.close()
        with self.assertRaises(kiln.InvalidArgument):
            memory.handle


if __name__ == "__main__":
    unittest.main()
