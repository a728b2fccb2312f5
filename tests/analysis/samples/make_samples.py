#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sample traces by the documented schemas of PyTorch's profiler and of Nsight Systems (docs/internals/trace-format.md).
No GPU is involved: times are invented, and the samples show what a program would have recorded.

    make_samples.py DIRECTORY                   the samples, each as NAME.kineto.json and NAME.nsight.sqlite
    make_samples.py DIRECTORY --megabytes 100   one large trace of each format: large.kineto.json, large.nsight.sqlite
                                                and large.kiln.json
"""
import argparse
import json
import pathlib
import sqlite3

DEVICE = "Sample GPU (no real device)"
PROCESS, THREAD = 4242, 4242
MEBIBYTE = 1 << 20
COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
MEMORY_KINDS = {"Pageable": 0, "Pinned": 1, "Device": 2}


class Program:
    """What a program did: calls of the host, activities of the device, ranges. Times are nanoseconds."""

    def __init__(self):
        self.now = 1_000_000
        self.correlation = 100
        self.calls, self.kernels, self.copies, self.memory, self.waits, self.ranges = [], [], [], [], [], []

    def call(self, name, length=5_000):
        self.correlation += 1
        self.calls.append((name, self.now, self.now + length, self.correlation))
        self.now += length + 1_000
        return self.correlation

    def allocate(self, size):
        self.memory.append((self.now, size, 0, self.call("cudaMalloc", 90_000)))

    def free(self, size):
        self.memory.append((self.now, size, 1, self.call("cudaFree", 40_000)))

    def launch(self, kernel, blocks, stream=7, threads=256):
        correlation = self.call("cudaLaunchKernel")
        self.kernels.append((kernel, self.now, self.now + 20_000, stream, correlation, blocks, threads))

    def copy(self, direction, size, memory="Pageable", stream=7):
        correlation = self.call("cudaMemcpyAsync", 400_000)
        self.copies.append((direction, self.now - 300_000, self.now - 1_000, stream, correlation, size, memory))

    def wait(self, name="cudaDeviceSynchronize", stream=None):
        correlation = self.call(name, 30_000)
        self.waits.append((self.now - 31_000, self.now - 1_000, stream, correlation))

    def operation(self, name, kind="user_annotation"):
        program = self

        class Range:
            def __enter__(self):
                self.start = program.now
                program.now += 1_000

            def __exit__(self, *_):
                program.ranges.append((name, kind, self.start, program.now))
                program.now += 1_000

        return Range()


def planted(program, rounds=40):
    """Allocates, launches one block, waits, copies 4 MiB down and up, in each round."""
    for _ in range(rounds):
        program.allocate(4 * MEBIBYTE)
        program.launch("scale(float*, int)", blocks=1)
        program.wait()
        program.copy("DtoH", 4 * MEBIBYTE)
        program.copy("HtoD", 4 * MEBIBYTE)
        program.free(4 * MEBIBYTE)


def planted_range(program):
    """The same within a range that the program declared."""
    with program.operation("resample"):
        planted(program)


def repaired(program):
    """Allocates once, copies once in each direction, and launches grids that fill a device."""
    program.allocate(4 * MEBIBYTE)
    program.copy("HtoD", 4 * MEBIBYTE, "Pinned", stream=13)
    for _ in range(40):
        program.launch("scale(float*, int)", blocks=4096, stream=13)
    program.copy("DtoH", 4 * MEBIBYTE, "Pinned", stream=13)
    program.wait("cudaStreamSynchronize", stream=13)
    program.free(4 * MEBIBYTE)


def repaired_range(program):
    with program.operation("resample"):
        repaired(program)


def no_copies(program):
    """The repaired program, recorded without the copies of the device."""
    repaired(program)
    program.copies.clear()


def no_device(program):
    """A program of a machine without a GPU: operators of the CPU alone."""
    for _ in range(5):
        with program.operation("aten::add", "cpu_op"):
            program.now += 50_000


def kineto_events(program):
    """Yields the events of a profile by PyTorch, in microseconds."""

    def complete(category, name, process, thread, start, end, arguments):
        return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start / 1000,
                "dur": (end - start) / 1000, "args": arguments}

    yield {"name": "process_name", "ph": "M", "ts": 0, "pid": PROCESS, "tid": 0, "args": {"name": "python3"}}
    yield {"name": "process_name", "ph": "M", "ts": 0, "pid": 0, "tid": 0, "args": {"name": "python3"}}
    yield {"name": "thread_name", "ph": "M", "ts": 0, "pid": PROCESS, "tid": THREAD,
           "args": {"name": f"thread {THREAD} (python3)"}}
    for name, kind, start, end in program.ranges:
        yield complete(kind, name, PROCESS, THREAD, start, end, {"External id": start, "Ev Idx": 1})
    for name, start, end, correlation in program.calls:
        yield complete("cuda_runtime", name, PROCESS, THREAD, start, end,
                       {"External id": correlation, "cbid": 211, "correlation": correlation})
        yield {"ph": "s", "id": correlation, "pid": PROCESS, "tid": THREAD, "ts": start / 1000, "cat": "ac2g",
               "name": "ac2g"}
    for name, start, end, stream, correlation, blocks, threads in program.kernels:
        yield complete("kernel", name, 0, stream, start, end,
                       {"External id": correlation, "queued": 0, "device": 0, "context": 1, "stream": stream,
                        "correlation": correlation, "registers per thread": 32, "shared memory": 1024,
                        "blocks per SM": blocks / 80, "warps per SM": 1.5, "grid": [blocks, 1, 1],
                        "block": [threads, 1, 1], "est. achieved occupancy %": 40})
    for direction, start, end, stream, correlation, size, memory in program.copies:
        kinds = f"{memory} -> Device" if direction == "HtoD" else f"Device -> {memory}"
        yield complete("gpu_memcpy", f"Memcpy {direction} ({kinds})", 0, stream, start, end,
                       {"External id": correlation, "device": 0, "context": 1, "stream": stream,
                        "correlation": correlation, "bytes": size, "memory bandwidth (GB/s)": 13.5})


def write_kineto(program, path):
    devices = [{"id": 0, "name": DEVICE, "computeMajor": 9, "computeMinor": 0, "numSms": 80}] if program.calls else []
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"schemaVersion": 1, "deviceProperties": devices, "displayTimeUnit": "ms",
                               "baseTimeNanoseconds": 0})[:-1] + ', "traceEvents": [\n')
        for number, event in enumerate(kineto_events(program)):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")


# The tables and columns that the reader uses, and some that it does not.
TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_GPU": "id INTEGER NOT NULL PRIMARY KEY, name TEXT, smCount INTEGER",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
                                   "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, "
                                   "returnValue INTEGER NOT NULL, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                                  "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
                                  "globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, "
                                  "registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
                                  "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, "
                                  "blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
                                  "dynamicSharedMemory INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                                  "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
                                  "globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, "
                                  "srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                                           "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, "
                                           "correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                                    "contextId INTEGER NOT NULL, address INTEGER NOT NULL, bytes INTEGER NOT NULL, "
                                    "memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, "
                                    "correlationId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, "
                   "textId INTEGER, domainId INTEGER",
}


def nsight_rows(program):
    """Returns the rows of each table; Nsight Systems creates no table without rows."""
    texts = {}

    def text(value):
        return texts.setdefault(value, len(texts) + 1)

    pid = PROCESS << 24
    tid = pid | THREAD
    rows = {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [(start, end, 0, tid, correlation, text(f"{name}_v7000"), 0, None)
                                        for name, start, end, correlation in program.calls],
        "CUPTI_ACTIVITY_KIND_KERNEL": [(start, end, 0, 1, stream, correlation, pid, text(name), text(name.split("(")[0]),
                                        32, blocks, 1, 1, threads, 1, 1, 1024, 0)
                                       for name, start, end, stream, correlation, blocks, threads in program.kernels],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [(start, end, 0, 1, stream, correlation, pid, size, COPY_KINDS[direction],
                                        MEMORY_KINDS[memory if direction == "HtoD" else "Device"],
                                        MEMORY_KINDS[memory if direction == "DtoH" else "Device"])
                                       for direction, start, end, stream, correlation, size, memory in program.copies],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [(start, end, 0, 1, 0xFFFFFFFF if stream is None else stream, correlation,
                                                 pid, 4 if stream is None else 3)
                                                for start, end, stream, correlation in program.waits],
        "CUDA_GPU_MEMORY_USAGE_EVENTS": [(start, pid, 0, 1, 0x7F0000000000, size, 2, operation, correlation)
                                         for start, size, operation, correlation in program.memory],
        "NVTX_EVENTS": [(start, end, 59, None, tid, text(name), 0) for name, _, start, end in program.ranges],
        "TARGET_INFO_GPU": [(0, DEVICE, 80)] if program.calls else [],
        "TARGET_INFO_SESSION_START_TIME": [(0, "2026-11-17 00:00:00", "2026-11-17 00:00:00")],
        "ThreadNames": [(text("python3"), 0, tid)],
    }
    rows["StringIds"] = [(number, value) for value, number in texts.items()]
    return rows


def write_nsight(program, path):
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        for table, rows in nsight_rows(program).items():
            if rows:
                database.execute(f"CREATE TABLE {table} ({TABLES[table]})")
                database.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
    database.close()


def write_kiln(path, size):
    """A trace of kiln with the same program, in runs of an operation, until the file has this size."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"traceEvents":[{"ph":"M","ts":0,"pid":1,"tid":1,"name":"process_name","args":{"name":"sample"}},\n'
                   '{"ph":"M","ts":0,"pid":1,"tid":1,"name":"kiln_trace","args":{"name":"kiln trace 2"}}')
        number, time, run = 0, 0, 0
        steps = [("allocated", {"message": "allocated", "bytes": 4 * MEBIBYTE}),
                 ("launched", {"message": "scale", "unit": "scale.cu", "target": "sm_90", "grid_blocks": 1,
                               "block_threads": 256, "suggested_block_threads": 256}),
                 ("synchronized", {}),
                 ("copied", {"message": "from the device", "bytes": 4 * MEBIBYTE}),
                 ("copied", {"message": "to the device", "bytes": 4 * MEBIBYTE})]
        while file.tell() < size:
            run += 1
            work = {"operation": "sample.resample", "stage": "scale", "dispatch": run, "workflow": run, "rows": 100000,
                    "residency": "device"}
            for kind, fields in steps * 40:
                number, time = number + 1, time + 16
                event = {"ph": "X", "ts": time, "pid": 1, "tid": 268435456, "cat": kind, "name": kind, "dur": 8,
                         "args": {"id": number, "thread": 1, "stream": "0x7f3a00", "ms": 0.008, **fields, **work}}
                file.write(",\n" + json.dumps(event))
        file.write("\n]}\n")


def write_large(directory, size):
    write_kiln(directory / "large.kiln.json", size)
    for write, name in ((write_kineto, "large.kineto.json"), (write_nsight, "large.nsight.sqlite")):
        program = Program()
        rounds = 2000
        planted(program, 10)
        write(program, directory / name)
        for _ in range(2):  # the second file has the size that the first one predicts
            per_round = (directory / name).stat().st_size / (len(program.kernels))
            rounds = int(size / per_round) + 1
            program = Program()
            for _ in range(rounds // 1000 + 1):
                with program.operation("resample"):
                    planted(program, 1000)
            write(program, directory / name)


SAMPLES = [planted, planted_range, repaired, repaired_range, no_copies, no_device]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--megabytes", type=int)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    if arguments.megabytes:
        write_large(arguments.directory, arguments.megabytes * 1_000_000)
        return
    for sample in SAMPLES:
        program = Program()
        sample(program)
        write_kineto(program, arguments.directory / f"{sample.__name__}.kineto.json")
        write_nsight(program, arguments.directory / f"{sample.__name__}.nsight.sqlite")


if __name__ == "__main__":
    main()
