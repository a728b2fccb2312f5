// SPDX-License-Identifier: Apache-2.0
// The edges of the rules about streams, buffers, host copies, precision and shared memory, on hand-written traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "analysis/audit/audit.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

using Found = std::vector<std::string>;
constexpr std::uint64_t kStream = HandMadeTrace::kStream;
constexpr std::uint64_t kOther = 0x80;
constexpr std::uint64_t kLarge = 64 << 10;

template <class Write>
Found found_after(const Write& write) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  write(trace);
  trace.dispatched("cuda");
  return found_in(trace.report());
}

TEST(AuditStreams, OneCallBesideOtherWorkIsAnOverlap) {
  for (const bool overlaps : {false, true}) {
    const Found found = found_after([&](HandMadeTrace& trace) {
      for (int turn = 0; turn < 4; ++turn) {
        const std::uint64_t stream = turn % 2 == 0 ? kStream : kOther;
        trace.launched("step", 1000, 256, stream);
        if (overlaps && turn == 1) continue;
        trace.copied_out(4, Purpose::AllocationSize, stream);
        trace.allocated(1000);
      }
    });
    EXPECT_EQ(found, overlaps ? Found() : Found({"MEDIUM streams_never_overlap"}));
  }
}

TEST(AuditStreams, StreamsThatAreNotUsedAgainAreNotAlternating) {
  EXPECT_EQ(found_after([](HandMadeTrace& trace) {
              for (const std::uint64_t stream : {1, 2, 3, 4}) {
                trace.launched("step", 1000, 256, stream << 8);
                trace.synchronized(stream << 8);
              }
            }),
            Found());
}

TEST(AuditStreams, MeasuringWaitsDoNotEndAnOverlap) {
  EXPECT_EQ(found_after([](HandMadeTrace& trace) {
              for (int turn = 0; turn < 6; ++turn) {
                const std::uint64_t stream = turn % 2 == 0 ? kStream : kOther;
                trace.launched("step", 1000, 256, stream);
                trace.synchronized(stream, Purpose::Trace);
              }
            }),
            Found());
}

TEST(AuditStreams, WaitForTheDeviceEndsTheWorkOfAllStreams) {
  for (const char* what : {"", "the device"}) {
    HandMadeTrace trace;
    for (int turn = 0; turn < 4; ++turn) {
      trace.launched("step", 1000, 256, turn % 2 == 0 ? kStream : kOther);
      Event wait = trace.made(Event::Kind::Synchronized, what);
      wait.stream = kOther;
      trace.emit(wait);
    }
    const Found found = found_in(trace.report());
    EXPECT_EQ(std::count(found.begin(), found.end(), "MEDIUM streams_never_overlap"), *what != '\0' ? 1 : 0);
  }
}

TEST(AuditStreams, PageableCopyNeedsSizeOtherWorkAndRepetition) {
  const auto copies = [](std::uint64_t bytes, std::optional<bool> pinned, std::uint64_t stream, int count) {
    return found_after([&](HandMadeTrace& trace) {
      trace.launched("step");
      for (int i = 0; i < count; ++i) trace.copied_in(bytes, stream, pinned);
    });
  };
  EXPECT_EQ(copies(kLarge, false, kOther, 2), Found({"MEDIUM pageable_copy"}));
  EXPECT_EQ(copies(kLarge - 1, false, kOther, 2), Found());
  EXPECT_EQ(copies(kLarge, true, kOther, 2), Found());
  EXPECT_EQ(copies(kLarge, std::nullopt, kOther, 2), Found()) << "not known";
  EXPECT_EQ(copies(kLarge, false, kStream, 2), Found()) << "the only stream";
  EXPECT_EQ(copies(kLarge, false, kOther, 1), Found());
}

TEST(AuditStreams, DefaultStreamBesideOneStreamIsNotAFinding) {
  for (const std::uint64_t second : {kStream, kOther}) {
    const Found found = found_after([&](HandMadeTrace& trace) {
      for (int turn = 0; turn < 4; ++turn) {
        trace.launched("step", 1000, 256, turn % 2 == 0 ? kStream : second);
        trace.launched("helper", 1000, 256, 0);
      }
    });
    EXPECT_EQ(found, second == kOther ? Found({"HIGH default_stream_between_streams"}) : Found());
  }
}

// Grows a buffer `steps` times by the factor `by` / 4. Without `launch`, nothing uses it.
Found grown(int steps, std::uint64_t by, const char* stage, bool copied) {
  return found_after([&](HandMadeTrace& trace) {
    std::uint64_t bytes = 64 << 10;
    trace.allocated(bytes);
    trace.launched("append");
    for (int step = 0; step < steps; ++step) {
      if (step > 1) trace.work().stage = stage;
      trace.allocated(bytes * by / 4);
      trace.launched("append");
      if (copied) trace.copied_on_device(bytes);
      trace.allocated(bytes, "released");
      bytes = bytes * by / 4;
    }
  });
}

TEST(AuditBuffers, ThreeStepsOfGrowthAreFound) {
  const Found resized({"MEDIUM output_resized"});
  EXPECT_EQ(grown(3, 6, "", false), resized);
  EXPECT_EQ(grown(2, 6, "", false), Found());
  EXPECT_EQ(grown(3, 5, "", false), Found()) << "a quarter can be another buffer";
  EXPECT_EQ(grown(3, 5, "", true), resized) << "unless its bytes are copied";
  EXPECT_EQ(grown(3, 40, "", true), Found()) << "ten times the size is another buffer";
  EXPECT_EQ(grown(3, 6, "other", false), Found()) << "another stage";
  EXPECT_EQ(grown(3, 4, "", true), Found()) << "the same size";
}

TEST(AuditBuffers, GrowthOutsideOfRunsNeedsCopies) {
  for (const bool copied : {false, true}) {
    HandMadeTrace trace;
    trace.allocated(1000);
    for (std::uint64_t bytes = 1000; bytes <= 8000; bytes *= 2) {
      trace.launched("append");
      trace.allocated(bytes * 2);
      if (copied) trace.copied_on_device(bytes);
      trace.allocated(bytes, "released");
    }
    EXPECT_EQ(found_in(trace.report()), copied ? Found({"MEDIUM output_resized"}) : Found());
  }
}

TEST(AuditBuffers, SixtyFourSmallAllocationsAreMany) {
  const auto allocated = [](int count, std::uint64_t bytes) {
    return found_after([&](HandMadeTrace& trace) {
      for (int i = 0; i < count; ++i) trace.allocated(bytes);
      trace.launched("first");
    });
  };
  EXPECT_EQ(allocated(64, 256), Found({"MEDIUM many_small_allocations"}));
  EXPECT_EQ(allocated(63, 256), Found());
  EXPECT_EQ(allocated(64, 257), Found());
}

TEST(AuditBins, ReadEndsTheSequenceAndLargeUploadsAreChunks) {
  const auto bins = [](int count, std::uint64_t bytes, bool read) {
    return found_after([&](HandMadeTrace& trace) {
      for (int i = 0; i < count; ++i) {
        trace.copied_in(bytes);
        trace.launched("refine");
        if (!read || i != count / 2) continue;
        trace.copied_out(4);
        trace.allocated(100);
      }
    });
  };
  EXPECT_EQ(bins(9, 17, false), Found({"HIGH work_binned_by_host"}));
  EXPECT_EQ(bins(9, 64 << 10, false), Found({"HIGH work_binned_by_host"}));
  EXPECT_EQ(bins(8, 17, false), Found()) << "a small fixed set";
  EXPECT_EQ(bins(9, 16, false), Found()) << "a parameter";
  EXPECT_EQ(bins(9, (64 << 10) + 1, false), Found()) << "a chunk of rows";
  EXPECT_EQ(bins(9, 17, true), Found());
}

// Runs of an operation that read, with another event between two of them.
Found mirrored(int runs, std::uint64_t bytes, Purpose purpose, const std::function<void(HandMadeTrace&)>& between) {
  HandMadeTrace trace;
  for (int run = 0; run < runs; ++run) {
    trace.begin("auto", "cuda", Residency::Device);
    trace.copied_out(bytes, purpose);
    trace.dispatched("cuda");
    between(trace);
  }
  return found_in(trace.report());
}

TEST(AuditHostCopies, MirrorIsRebuiltIfNothingChanged) {
  const auto nothing = [](HandMadeTrace&) {};
  const Found unmarked({"LOW unmarked_host_copy"});
  EXPECT_EQ(mirrored(3, 800, Purpose::Unspecified, nothing), Found({"MEDIUM host_mirror_rebuilt"}));
  EXPECT_EQ(mirrored(2, 800, Purpose::Unspecified, nothing), unmarked);
  EXPECT_EQ(mirrored(4, 16, Purpose::Unspecified, nothing), Found()) << "a scalar";
  EXPECT_EQ(mirrored(4, 800, Purpose::Materialize, nothing), Found()) << "the caller asked for it";
  const auto change = [](HandMadeTrace& trace) { trace.launched("update"); };
  EXPECT_EQ(mirrored(4, 800, Purpose::Unspecified, change), unmarked);
  const auto upload = [](HandMadeTrace& trace) { trace.copied_in(800); };
  EXPECT_EQ(mirrored(4, 800, Purpose::Unspecified, upload), unmarked);
}

TEST(AuditHostCopies, UnmarkedCopyIsFoundOnlyAtTheEndOfADeclaredRun) {
  EXPECT_EQ(found_after([](HandMadeTrace& trace) {
              trace.launched("fill");
              trace.copied_out(17);
            }),
            Found({"LOW unmarked_host_copy"}));
  EXPECT_EQ(found_after([](HandMadeTrace& trace) {
              trace.launched("fill");
              trace.copied_out(800);
              trace.launched("more");
            }),
            Found({"HIGH copy_feeds_device_work"}))
      << "not the end";
  EXPECT_EQ(found_after([](HandMadeTrace& trace) {
              trace.launched("fill");
              for (int i = 0; i < 3; ++i) trace.copied_out(800);
            }),
            Found({"MEDIUM repeated_small_reads"}))
      << "reported once";
  HandMadeTrace outside;
  outside.launched("fill");
  outside.copied_out(800);
  EXPECT_EQ(found_in(outside.report()), Found());
}

TEST(AuditHostCopies, OtherProfilersKnowNoPurpose) {
  HandMadeTrace written;
  for (int run = 0; run < 4; ++run) {
    written.begin("auto", "cuda");
    written.copied_out(8000);
    written.dispatched("cuda");
  }
  audit::Trace trace = audit::parse_trace(written.json()).value();
  EXPECT_EQ(found_in(audit::run_audit(trace)), Found({"MEDIUM host_mirror_rebuilt"}));
  trace.format = audit::TraceFormat::Nsight;
  EXPECT_EQ(found_in(audit::run_audit(trace)), Found());
}

Found in_precision(const char* precision, const char* planned, const char* its_class, const char* ratio,
                   const char* selected = "cuda") {
  HandMadeTrace trace;
  trace.begin("auto", selected);
  if (std::string(selected) != "cpu") trace.launched("step");
  trace.dispatched(selected, {{"precision", precision},
                              {"planned_precision", planned},
                              {"precision_class", its_class},
                              {"fp64_ratio", ratio}});
  return found_in(trace.report());
}

TEST(AuditPrecision, FollowsPlanAndDeviceClass) {
  const Found needless({"MEDIUM needless_fp64"});
  for (const char* its_class : {"predicate", "metric", "coarse"}) {
    EXPECT_EQ(in_precision("fp64", "mixed", its_class, "32"), needless) << its_class;
  }
  EXPECT_EQ(in_precision("fp64", "fp32", "metric", "4.5"), needless);
  EXPECT_EQ(in_precision("fp64", "fp32", "metric", "4"), Found());
  EXPECT_EQ(in_precision("fp64", "fp32", "metric", "unknown"), Found());
  EXPECT_EQ(in_precision("fp64", "fp64", "metric", "64"), Found()) << "a policy";
  EXPECT_EQ(in_precision("mixed", "fp32", "metric", "64"), Found());
  EXPECT_EQ(in_precision("fp64", "fp32", "metric", "64", "cpu"), Found());
  EXPECT_EQ(in_precision("fp32", "fp64", "constructive", "2"), Found({"HIGH constructive_not_fp64"}));
  EXPECT_EQ(in_precision("fp64", "fp64", "constructive", "64"), Found());
}

Found with_shared(std::uint64_t shared, std::uint32_t block, std::uint32_t suggested, std::uint64_t blocks = 1000,
                  bool cpu = false) {
  return found_after([&](HandMadeTrace& trace) {
    Event event = trace.made(Event::Kind::Launched, "tile");
    event.stream = kStream;
    event.grid_blocks = blocks;
    event.block_threads = block;
    event.suggested_block_threads = suggested;
    event.shared_bytes = shared;
    event.cpu_device = cpu;
    trace.emit(event);
  });
}

TEST(AuditShared, NeedsFewResidentThreadsAndALargerSuggestion) {
  const Found limits({"LOW shared_memory_limits_blocks"});
  EXPECT_EQ(with_shared(48 << 10, 128, 256), limits) << "4 blocks of 128 threads";
  EXPECT_EQ(with_shared(48 << 10, 64, 1024), limits) << "more exact than small_fixed_block";
  EXPECT_EQ(with_shared(32 << 10, 128, 256), Found()) << "7 blocks of 128 threads";
  EXPECT_EQ(with_shared(48 << 10, 128, 255), Found()) << "no larger block is suggested";
  EXPECT_EQ(with_shared(48 << 10, 128, 0), Found()) << "nothing is suggested";
  EXPECT_EQ(with_shared(48 << 10, 128, 256, 2), Found()) << "there are no more threads";
  EXPECT_EQ(with_shared(48 << 10, 128, 256, 1000, true), Found()) << "PoCL has no multiprocessors";
  EXPECT_EQ(with_shared(0, 128, 256), Found());
}

}  // namespace
}  // namespace kiln::test
