// SPDX-License-Identifier: Apache-2.0
// Clean programs in traces written by hand: what looks like a fault and is none.
#include "analysis/audit_fixture.hpp"

namespace kiln::test {
namespace {

AuditedProgram clean(const char* what, std::function<void(HandMadeTrace&)> write) {
  return by_hand(what, "", std::move(write));
}

AuditedPrograms reads() {
  return {
      clean("a size that sizes an allocation, without a purpose",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("count");
              trace.copied_out(16);
              trace.allocated(400);
              trace.launched("fill");
              trace.dispatched("cuda");
            }),
      clean("three columns materialized at the end",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("fill");
              for (int column = 0; column < 3; ++column) trace.copied_out(kRowBytes, Purpose::Materialize);
              trace.dispatched("cuda");
            }),
      clean("waits and reads that only measure",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (int stage = 0; stage < 5; ++stage) {
                trace.launched("step");
                trace.synchronized(HandMadeTrace::kStream, Purpose::Trace);
                trace.copied_out(8, Purpose::Trace);
              }
              trace.dispatched("cuda");
            }),
      clean("a wait before the last read",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("fill");
              trace.synchronized();
              trace.copied_out(kRowBytes, Purpose::Materialize);
              trace.dispatched("cuda");
            }),
      clean("three sizes in one read that sizes an allocation",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("count");
              trace.copied_out(24);
              trace.allocated(400);
              trace.launched("fill");
              trace.dispatched("cuda");
            }),
      clean("batches that are uploaded before the last result is read",
            [](HandMadeTrace& trace) {
              trace.copied_in(1 << 20);
              for (int batch = 0; batch < 20; ++batch) {
                trace.launched("model");
                trace.copied_in(1 << 20);
                trace.copied_out(4000);
              }
            }),
      clean("a mirror that is read again after a change",
            [](HandMadeTrace& trace) {
              for (int run = 0; run < 4; ++run) {
                trace.begin("auto", "cuda", Residency::Device);
                trace.launched("update");
                trace.copied_out(kRowBytes, Purpose::Materialize);
                trace.dispatched("cuda");
              }
            }),
  };
}

AuditedPrograms decisions() {
  return {
      clean("few rows on the CPU",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cpu");
              trace.dispatched("cpu");
            }),
      clean("a fallback that is reported",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.emit(trace.made(runtime::events::kFellBack, "the device is lost"));
              trace.dispatched("cpu");
            }),
      clean("a constructive operation in fp64 on a slow device",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("buffer");
              trace.dispatched("cuda", {{"precision", "fp64"},
                                        {"planned_precision", "fp64"},
                                        {"precision_class", "constructive"},
                                        {"fp64_ratio", "64"}});
            }),
      clean("a metric in fp64 on a fast device",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("length");
              trace.dispatched("cuda", {{"precision", "fp64"},
                                        {"planned_precision", "fp64"},
                                        {"precision_class", "metric"},
                                        {"fp64_ratio", "2"}});
            }),
      clean("a predicate in mixed precision",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("contains");
              trace.dispatched("cuda", {{"precision", "mixed"},
                                        {"planned_precision", "mixed"},
                                        {"precision_class", "predicate"},
                                        {"fp64_ratio", "32"}});
            }),
      clean("managed memory that was requested",
            [](HandMadeTrace& trace) {
              Event set = trace.made(runtime::events::kMemoryTierSelected);
              set.requested = set.selected = "managed";
              trace.emit(set);
              trace.begin("auto", "cuda");
              trace.launched("first");
              trace.dispatched("cuda");
            }),
  };
}

AuditedPrograms loops() {
  return {
      clean("a hundred iterations of a solver",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (int turn = 0; turn < 100; ++turn) {
                trace.copied_in(16);  // a parameter
                trace.launched("relax", 4000);
              }
              trace.copied_out(kRowBytes, Purpose::Materialize);
              trace.dispatched("cuda");
            }),
      clean("rows uploaded in chunks",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (int chunk = 0; chunk < 20; ++chunk) {
                trace.copied_in(4 << 20);
                trace.launched("append", 4000);
              }
              trace.dispatched("cuda");
            }),
      clean("outputs of chunks with growing sizes",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (std::uint64_t bytes = 1000; bytes <= 6000; bytes += 1000) {
                trace.launched("count");
                trace.copied_out(4);
                trace.allocated(bytes);
                trace.launched("fill");
                trace.allocated(bytes, "released");
              }
              trace.dispatched("cuda");
            }),
      clean("temporary buffers of growing sizes for different kernels",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              std::uint64_t bytes = 1000;
              for (const char* kernel : {"keys", "ranks", "pairs", "edges", "rings"}) {
                trace.allocated(bytes *= 2);
                trace.launched(kernel);
                trace.allocated(bytes, "released");
              }
              trace.dispatched("cuda");
            }),
      clean("one step of growth",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.allocated(1000);
              trace.launched("try");
              trace.copied_out(4);
              trace.allocated(4000);
              trace.allocated(1000, "released");
              trace.launched("fill");
              trace.dispatched("cuda");
            }),
      clean("a kernel with its own small blocks and shared memory",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              Event event = trace.made(Event::Kind::Launched, "gemm");
              event.stream = HandMadeTrace::kStream;
              event.grid_blocks = 1000;
              event.block_threads = event.suggested_block_threads = 128;  // __launch_bounds__(128)
              event.shared_bytes = 100 << 10;
              trace.emit(event);
              trace.dispatched("cuda");
            }),
  };
}

AuditedPrograms streams() {
  return {
      clean("a stream for copies beside one for kernels",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (int chunk = 0; chunk < 4; ++chunk) {
                trace.copied_in(1 << 20, kOtherStream, true);
                trace.launched("step");
              }
              trace.dispatched("cuda");
            }),
      clean("small pageable parameters beside another stream",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (int chunk = 0; chunk < 4; ++chunk) {
                trace.launched("step");
                trace.copied_in(1024, kOtherStream, false);
              }
              trace.dispatched("cuda");
            }),
      clean("a program that uses only the default stream",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              for (int step = 0; step < 6; ++step) trace.launched("step", 1000, 256, 0);
              trace.synchronized(0);
              trace.dispatched("cuda");
            }),
      clean("a library without declared operations",
            [](HandMadeTrace& trace) {
              trace.allocated(kRowBytes);
              trace.copied_in(kRowBytes);
              trace.launched("count");
              trace.copied_out(4);
              trace.allocated(400);
              trace.launched("fill");
              trace.synchronized();
              trace.copied_out(kRowBytes);
            }),
      clean("a sweep over sizes without declared operations",
            [](HandMadeTrace& trace) {
              for (std::uint64_t bytes = 1 << 20; bytes <= 64 << 20; bytes *= 2) {
                trace.allocated(bytes);
                trace.copied_in(bytes);
                trace.launched("sort");
                trace.synchronized();
                trace.copied_out(bytes);
                trace.allocated(bytes, "released");
              }
            }),
      clean("the fallback of an algorithm until it is ready",
            [](HandMadeTrace& trace) {
              trace.begin("auto", "cuda");
              trace.launched("first");
              for (int call = 0; call < 6; ++call) {
                Event event = trace.made(call == 4   ? Event::Kind::Loaded
                                         : call == 5 ? Event::Kind::CalledCompiled
                                                     : Event::Kind::CalledFallback);
                event.unit = "reduce_sum_f64";
                trace.emit(event);
              }
              trace.dispatched("cuda");
            }),
      clean("each operation with a stream of its own",
            [](HandMadeTrace& trace) {
              for (std::uint64_t operation = 1; operation < 5; ++operation) {
                trace.begin("auto", "cuda");
                trace.launched("step", 1000, 256, operation << 8);
                trace.synchronized(operation << 8);
                trace.dispatched("cuda");
              }
            }),
  };
}

}  // namespace

AuditedPrograms clean_by_hand() {
  AuditedPrograms all;
  for (AuditedPrograms& part : std::vector{reads(), decisions(), loops(), streams()}) {
    for (AuditedProgram& each : part) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace kiln::test
