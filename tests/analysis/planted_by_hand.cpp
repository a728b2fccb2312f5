// SPDX-License-Identifier: Apache-2.0
// Faults in traces written by hand: what kiln-runtime rejects and programs with their own dispatch can do, evidence
// that only other profilers record, and further forms of faults that the pipeline has too.
#include "analysis/audit_fixture.hpp"

namespace kiln::test {
namespace {

HandMadeTrace::Details precision_of(const char* precision, const char* planned, const char* its_class,
                                    const char* ratio) {
  return {
      {"precision", precision}, {"planned_precision", planned}, {"precision_class", its_class}, {"fp64_ratio", ratio}};
}

/// Returns a program of which a profiler recorded the times on the device. `times` are those of its launches.
AuditedProgram profiled(const char* what, const char* found, std::vector<std::pair<double, double>> times) {
  return {what, "by hand",
          [times = std::move(times)] {
            HandMadeTrace written;
            written.begin("auto", "cuda");
            for (std::size_t i = 0; i < times.size(); ++i) {
              written.launched("step", 1000, 256, i % 2 == 0 ? HandMadeTrace::kStream : kOtherStream);
            }
            written.dispatched("cuda");
            audit::Trace trace = audit::parse_trace(written.json()).value();
            trace.format = audit::TraceFormat::Kineto;
            std::size_t next = 0;
            for (audit::RecordedEvent& event : trace.events) {
              if (event.event.kind != Event::Kind::Launched) continue;
              std::tie(event.device_start_ms, event.device_end_ms) = times[next++];
            }
            return audit::run_audit(trace);
          },
          found};
}

AuditedPrograms wrong_backend() {
  return {
      by_hand("rows on a device, CPU selected", "BLOCKING input_demoted",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cpu", Residency::Device);
                trace.dispatched("cpu");
              }),
      by_hand("gpu requested, CPU selected", "BLOCKING requested_not_selected",
              [](HandMadeTrace& trace) {
                trace.begin("gpu", "cpu");
                trace.dispatched("cpu");
              }),
      by_hand("a workflow decided twice", "MEDIUM repeated_decision",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                const std::uint64_t workflow = trace.work().workflow;
                trace.launched("first");
                trace.dispatched("cuda");
                trace.work() = {"test.pipeline", "", 0, workflow, 1000, Residency::Host, Purpose::Unspecified};
                trace.decided("auto", "cuda");
              }),
      by_hand("launches that the driver rejected", "BLOCKING silent_fallback",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("first: out of resources");
                trace.dispatched("cpu");
              }),
      by_hand("managed memory for a pool", "MEDIUM memory_not_pooled",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                Event set = trace.made(runtime::events::kMemoryTierSelected, "the driver has no pools");
                set.requested = "pool";
                set.selected = "managed";
                trace.emit(set);
                trace.launched("first");
                trace.dispatched("cuda");
              }),
      by_hand("a metric in fp64 on a device with 1/64 of it", "MEDIUM needless_fp64",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("length");
                trace.dispatched("cuda", precision_of("fp64", "fp32", "metric", "64"));
              }),
      by_hand("a constructive operation in fp32", "HIGH constructive_not_fp64",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("build");
                trace.dispatched("cuda", precision_of("fp32", "fp64", "constructive", "2"));
              }),
      by_hand("a buffer in mixed precision", "HIGH constructive_not_fp64",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("buffer");
                trace.dispatched("cuda", precision_of("mixed", "fp64", "constructive", "2"));
              }),
  };
}

AuditedPrograms copies() {
  return {
      by_hand("a mirror that each run builds again", "MEDIUM host_mirror_rebuilt",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("build");
                trace.dispatched("cuda");
                for (int run = 0; run < 4; ++run) {
                  trace.begin("auto", "cuda", Residency::Device);
                  trace.copied_out(kRowBytes);
                  trace.dispatched("cuda");
                }
              }),
      by_hand("results materialized in the middle", "HIGH copy_feeds_device_work",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("first");
                trace.copied_out(kRowBytes, Purpose::Materialize);
                trace.launched("second");
                trace.dispatched("cuda");
              }),
      by_hand("a size that sizes nothing", "HIGH copy_feeds_device_work",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("count");
                trace.copied_out(4, Purpose::AllocationSize);
                trace.launched("fill");
                trace.dispatched("cuda");
              }),
      by_hand("offsets computed by the host", "BLOCKING host_step",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("count");
                trace.copied_out(kRowBytes, Purpose::AllocationSize);
                trace.copied_in(kRowBytes);
                trace.launched("fill");
                trace.dispatched("cuda");
              }),
      by_hand("several columns copied without a purpose", "LOW unmarked_host_copy",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.launched("fill");
                for (int column = 0; column < 3; ++column) trace.copied_out(kRowBytes);
                trace.dispatched("cuda");
              }),
  };
}

AuditedPrograms waits_and_streams() {
  return {
      by_hand("a wait between two runs of a workflow", "HIGH sync_between_launches",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                const std::uint64_t workflow = trace.work().workflow;
                trace.launched("first");
                trace.synchronized();
                trace.dispatched("cuda");
                trace.work() = {"test.other", "", 77, workflow, 1000, Residency::Device, Purpose::Unspecified};
                trace.launched("second");
                trace.dispatched("cuda");
              }),
      by_hand("a wait and a read for each item", "HIGH sync_per_item",
              [](HandMadeTrace& trace) {
                for (int item = 0; item < 16; ++item) {
                  trace.launched(item % 2 == 0 ? "even" : "odd", 4);
                  trace.synchronized();
                  trace.copied_out(16, Purpose::Materialize);
                }
              }),
      by_hand("waits in a loop without an operation", "HIGH sync_between_launches",
              [](HandMadeTrace& trace) {
                for (int turn = 0; turn < 4; ++turn) {
                  trace.launched("step");
                  trace.synchronized();
                }
              }),
      by_hand("two streams in turn without an operation", "MEDIUM streams_never_overlap",
              [](HandMadeTrace& trace) {
                for (int chunk = 0; chunk < 4; ++chunk) {
                  const std::uint64_t stream = chunk % 2 == 0 ? HandMadeTrace::kStream : kOtherStream;
                  trace.copied_in(kRowBytes, stream);
                  trace.launched("step", 1000, 256, stream);
                  trace.copied_out(16, Purpose::Materialize, stream);
                }
              }),
      profiled("two streams with device times in turn", "MEDIUM streams_never_overlap",
               {{0, 1}, {1, 2}, {2, 3}, {3, 4}}),
      by_hand("rows from pageable memory beside another stream", "MEDIUM pageable_copy",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                for (int chunk = 0; chunk < 3; ++chunk) {
                  trace.launched("step");
                  trace.copied_in(1 << 20, kOtherStream, false);
                }
                trace.dispatched("cuda");
              }),
      by_hand("a CCCL wrapper on the default stream", "HIGH default_stream_between_streams",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                for (int turn = 0; turn < 4; ++turn) {
                  trace.launched("step", 1000, 256, turn % 2 == 0 ? HandMadeTrace::kStream : kOtherStream);
                  trace.emit(trace.made(Event::Kind::CalledCompiled, "reduce"));
                }
                trace.dispatched("cuda");
              }),
  };
}

AuditedPrograms pieces() {
  return {
      by_hand("an output that grows by a page and is copied", "MEDIUM output_resized",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                trace.allocated(64 << 10);
                for (std::uint64_t bytes = 64 << 10; bytes < 80 << 10; bytes += 4 << 10) {
                  trace.launched("append");
                  trace.allocated(bytes + (4 << 10));
                  trace.copied_on_device(bytes);
                  trace.allocated(bytes, "released");
                }
                trace.dispatched("cuda");
              }),
      by_hand("an output that is tried again with twice the size", "MEDIUM output_resized",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                for (std::uint64_t bytes = 1000; bytes <= 8000; bytes *= 2) {
                  trace.allocated(bytes);
                  trace.launched("fill");
                  trace.copied_out(4);
                  trace.allocated(bytes, "released");
                }
                trace.dispatched("cuda");
              }),
      by_hand("rows that go to the host and back, without an operation", "BLOCKING host_step",
              [](HandMadeTrace& trace) {
                for (int turn = 0; turn < 5; ++turn) {
                  trace.launched("step");
                  trace.copied_out(kRowBytes);
                  trace.copied_in(kRowBytes);
                }
              }),
      by_hand("a round trip between each two of 40 kernels", "BLOCKING host_step",
              [](HandMadeTrace& trace) {
                for (int turn = 0; turn < 40; ++turn) {
                  trace.launched(("step" + std::to_string(turn)).c_str());
                  trace.copied_out(kRowBytes);
                  trace.copied_in(kRowBytes);
                }
              }),
      by_hand("a round trip of rows that become fewer", "BLOCKING host_step",
              [](HandMadeTrace& trace) {
                for (std::uint64_t bytes = 1 << 30; bytes > 1024; bytes /= 3) {
                  trace.launched("filter");
                  trace.copied_out(bytes);
                  trace.copied_in(bytes / 2);
                }
              }),
      by_hand("two round trips, too few for a loop", "LOW possible_host_step",
              [](HandMadeTrace& trace) {
                for (int turn = 0; turn < 2; ++turn) {
                  trace.launched("step");
                  trace.copied_out(kRowBytes);
                  trace.copied_in(kRowBytes);
                }
                trace.launched("step");
              }),
      by_hand("a launch for each of 20 polygons", "HIGH many_tiny_launches",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                for (int polygon = 0; polygon < 20; ++polygon) trace.launched("contains", 8);
                trace.dispatched("cuda");
              }),
      by_hand("lists of bins between launches", "HIGH work_binned_by_host",
              [](HandMadeTrace& trace) {
                trace.begin("auto", "cuda");
                for (int bin = 0; bin < 9; ++bin) {
                  trace.copied_in(60'000);
                  trace.launched("refine");
                }
                trace.dispatched("cuda");
              }),
  };
}

AuditedPrograms unused_code() {
  return {by_hand("the fallback of an algorithm that is ready", "MEDIUM fallback_kept", [](HandMadeTrace& trace) {
    trace.begin("auto", "cuda");
    trace.launched("first");
    for (const Event::Kind kind : {Event::Kind::CalledFallback, Event::Kind::Loaded, Event::Kind::CalledFallback,
                                   Event::Kind::CalledFallback, Event::Kind::CalledFallback}) {
      Event event = trace.made(kind);
      event.unit = "reduce_sum_f64";
      trace.emit(event);
    }
    trace.dispatched("cuda");
  })};
}

}  // namespace

AuditedPrograms planted_by_hand() {
  AuditedPrograms all;
  for (AuditedPrograms& part : std::vector{wrong_backend(), copies(), waits_and_streams(), pieces(), unused_code()}) {
    for (AuditedProgram& each : part) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace kiln::test
