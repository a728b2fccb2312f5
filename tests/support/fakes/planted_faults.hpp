// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kiln/runtime.hpp>
#include <kiln/stream.hpp>

#include "support/fixtures/exact_variant.hpp"

namespace kiln::test {

/// Faults that make the pipeline below behave like CPU code, each named after what a program would do.
enum class Fault : unsigned char {
  WaitBetweenStages,
  HiddenCopy,
  HostStep,
  SmallReads,
  LaunchPerGroup,
  AllocationInLoop,
  TinyBlock,
  BlockingCompile,
  SilentFallback,
  DecideAgain,
  LaunchOutside,
  UnmarkedResult,
  ResizedOutput,
  BufferPerRow,
  BinsOfHost,
  StreamsInTurn,
};
using Faults = std::set<Fault>;

using Rows = std::vector<float>;

inline Unit pipeline_unit() {
  return Unit::opencl("pipeline.cl", R"(
    kernel void mark(global const float* x, global int* flags, int n) {
      const int i = get_global_id(0);
      if (i < n) flags[i] = x[i] > 0.5f;
    }
    kernel void count(global const int* flags, global int* counters, int n) {
      const int i = get_global_id(0);
      if (i < n && flags[i]) atomic_inc(counters);
    }
    kernel void fill(global const float* x, global const int* flags, global int* counters, global float* out, int n) {
      const int i = get_global_id(0);
      if (i < n && flags[i]) out[atomic_inc(counters + 1)] = x[i];
    }
    kernel void scale(global float* x, int n) {
      const int i = get_global_id(0);
      if (i < n) x[i] *= 2;
    }
    kernel void touch(global float* x, int n) {
      const int i = get_global_id(0);
      if (i < n) x[i] += 0;
    }
    kernel void nudge(global float* x, int n) {
      const int i = get_global_id(0);
      if (i < n) x[i] += 0;
    })")
      .with_entry("mark")
      .with_entry("count")
      .with_entry("fill")
      .with_entry("scale")
      .with_entry("touch")
      .with_entry("nudge");
}
inline Requirements kPipelineNeeds{"pipeline", [] { return Units{pipeline_unit()}; }};

/// A small real pipeline that keeps the rows above 0.5 and doubles them: four kernels, one scalar read that sizes an
/// allocation, and results that are materialized at the end; with the requested faults.
class Pipeline {
 public:
  Pipeline(runtime::Dispatch& dispatch, const Faults& faults, Stream stream)
      : dispatch_(dispatch), runtime_(dispatch.runtime()), faults_(faults), stream_(std::move(stream)) {}

  Rows run(const Rows& rows);

  /// Launches with the number of threads per block that the driver suggests, unless given. Errors throw.
  template <class... Args>
  static void launch(Session& session, const Stream& stream, const char* kernel, std::size_t rows, unsigned block,
                     const Args&... args) {
    const Kernel ready = session.get(pipeline_unit(), kernel, std::chrono::seconds(60)).value();
    const unsigned threads = block != 0 ? block : ready.occupancy().value().block_size;
    const auto blocks = static_cast<unsigned>((rows + threads - 1) / threads);
    ready.launch({Grid(blocks), Block(threads), stream}, args..., static_cast<int>(rows)).value();
  }

 private:
  bool planted(Fault fault) const { return faults_.count(fault) != 0; }
  template <class... Args>
  void launch(const char* kernel, std::size_t rows, const Args&... args) {
    launch(runtime_.session(), stream_, kernel, rows, 0, args...);
  }
  void read(void* to, const Buffer& from, std::size_t bytes) { stream_.download(to, from, bytes).value(); }
  void wait_between_stages();
  std::size_t kept_of(const Buffer& in, const Buffer& flags, const Buffer& counters, std::size_t rows);
  void sort_on_host(const Buffer& out, std::size_t kept);
  void loops(const Buffer& out, std::size_t kept);
  void pieces(const Buffer& out, std::size_t kept);
  void streams_in_turn(const Buffer& out, const Buffer& counters, std::size_t kept);
  void compile_now();
  void decide_again(std::size_t rows);

  runtime::Dispatch& dispatch_;
  runtime::Runtime& runtime_;
  const Faults& faults_;
  const Stream stream_;
};

inline void Pipeline::wait_between_stages() {
  if (planted(Fault::WaitBetweenStages)) stream_.synchronize().value();
}

inline void Pipeline::loops(const Buffer& out, std::size_t kept) {
  const runtime::Stage stage(dispatch_, "loops", &stream_);
  if (planted(Fault::AllocationInLoop)) {
    for (int turn = 0; turn < 10; ++turn) {
      const Buffer scratch = stream_.allocate(4096).value();
      launch("touch", kept, out);
    }
  }
  if (planted(Fault::LaunchPerGroup)) {
    for (int group = 0; group < 24; ++group) launch("touch", 64, out);
  }
  if (planted(Fault::TinyBlock)) launch(runtime_.session(), stream_, "nudge", kept, 16, out);
}

// Memory and work piece by piece instead of once.
inline void Pipeline::pieces(const Buffer& out, std::size_t kept) {
  const runtime::Stage stage(dispatch_, "pieces", &stream_);
  if (planted(Fault::ResizedOutput)) {
    Buffer output = stream_.allocate(1024).value();
    for (std::size_t bytes = 2048; bytes <= 16'384; bytes *= 2) {
      Buffer larger = stream_.allocate(bytes).value();
      launch("touch", kept, out);  // stands for the kernel that copies the rows
      output = std::move(larger);
    }
  }
  if (planted(Fault::BufferPerRow)) {
    std::vector<Buffer> rows;
    for (int row = 0; row < 64; ++row) rows.push_back(stream_.allocate(64).value());
  }
  if (planted(Fault::BinsOfHost)) {
    const std::vector<int> members(1000);
    const Buffer list = stream_.allocate(members.size() * sizeof(int)).value();
    for (int bin = 0; bin < 10; ++bin) {
      stream_.upload(list, members.data(), list.size()).value();
      launch("touch", kept, out);
    }
  }
}

// Two streams, each of which begins when the host has a size from the other.
inline void Pipeline::streams_in_turn(const Buffer& out, const Buffer& counters, std::size_t kept) {
  if (!planted(Fault::StreamsInTurn)) return;
  const Stream other = runtime_.session().stream(kiln::Backend::OpenCl).value();
  std::vector<Buffer> sized;
  const auto size_of_next = [&](const Stream& stream) {
    int size = 0;
    stream.download(&size, counters, sizeof size).value();
    sized.push_back(stream.allocate(1024).value());
  };
  size_of_next(stream_);
  for (const Stream* stream : {&stream_, &other, &stream_, &other}) {
    launch(runtime_.session(), *stream, "touch", kept, 0, out);
    size_of_next(*stream);
  }
}

// Compiles a unit that no caller, nor any earlier test, has requested before.
inline void Pipeline::compile_now() {
  static int times = 0;
  const std::string name = "unplanned" + std::to_string(++times);
  const Unit unit = Unit::opencl(name, "kernel void " + name + "(global int* x) { *x = 1; }").with_entry(name);
  (void)runtime_.session().get(unit, name, std::chrono::seconds(60)).value();
}

// Computes the rows to keep and their number, the one scalar that sizes an allocation.
inline std::size_t Pipeline::kept_of(const Buffer& in, const Buffer& flags, const Buffer& counters, std::size_t rows) {
  {
    const runtime::Stage stage(dispatch_, "mark", &stream_);
    launch("mark", rows, in, flags);
    if (planted(Fault::HiddenCopy)) {
      std::vector<int> looked_at(rows);
      read(looked_at.data(), flags, rows * sizeof(int));
    }
    wait_between_stages();
  }
  const runtime::Stage stage(dispatch_, "count", &stream_);
  launch("count", rows, flags, counters);
  const runtime::Transfer size(runtime_, Purpose::AllocationSize);
  int kept = 0;
  read(&kept, counters, sizeof kept);
  return static_cast<std::size_t>(kept);
}

inline void Pipeline::sort_on_host(const Buffer& out, std::size_t kept) {
  const runtime::Stage stage(dispatch_, "sort", &stream_);
  Rows rows(kept);
  read(rows.data(), out, kept * sizeof(float));
  std::sort(rows.begin(), rows.end());
  stream_.upload(out, rows.data(), kept * sizeof(float)).value();
}

inline Rows Pipeline::run(const Rows& rows) {
  std::optional<runtime::Transfer> input(std::in_place, runtime_, Purpose::Input);
  const Buffer in = stream_.copy_of(rows).value();
  const Buffer counters = stream_.copy_of(std::vector<int>(2)).value();
  input.reset();
  const Buffer flags = stream_.allocate(rows.size() * sizeof(int)).value();
  const std::size_t kept = kept_of(in, flags, counters, rows.size());
  const Buffer out = stream_.allocate(kept * sizeof(float)).value();
  {
    const runtime::Stage stage(dispatch_, "fill", &stream_);
    launch("fill", rows.size(), in, flags, counters, out);
  }
  if (planted(Fault::HostStep)) sort_on_host(out, kept);
  wait_between_stages();
  {
    const runtime::Stage stage(dispatch_, "scale", &stream_);
    launch("scale", kept, out);
  }
  loops(out, kept);
  pieces(out, kept);
  streams_in_turn(out, counters, kept);
  if (planted(Fault::BlockingCompile)) compile_now();
  if (planted(Fault::DecideAgain)) decide_again(rows.size());
  int again = 0;
  for (int i = 0; planted(Fault::SmallReads) && i < 4; ++i) read(&again, counters, sizeof again);
  Rows result(kept);
  std::optional<runtime::Transfer> results;
  if (!planted(Fault::UnmarkedResult)) results.emplace(runtime_, Purpose::Materialize);
  read(result.data(), out, kept * sizeof(float));
  if (results) results->add_bytes(kept * sizeof(float));
  return result;
}

inline Result<Rows> pipeline_on_cpu(runtime::Dispatch& /*dispatch*/, const Rows& rows, const Faults& /*faults*/) {
  Rows kept;
  for (const float row : rows) {
    if (row > 0.5F) kept.push_back(2 * row);
  }
  return kept;
}

inline Result<Rows> pipeline_on_opencl(runtime::Dispatch& dispatch, const Rows& rows, const Faults& faults) {
  // The worst case: it reports nothing, and the result is right.
  if (faults.count(Fault::SilentFallback) != 0) return pipeline_on_cpu(dispatch, rows, faults);
  return Pipeline(dispatch, faults, dispatch.runtime().session().stream(kiln::Backend::OpenCl).value()).run(rows);
}

using PipelineRun = Result<Rows>(runtime::Dispatch&, const Rows&, const Faults&);
inline constexpr auto kPipeline = runtime::operation<PipelineRun>(
    "test.pipeline", runtime::PrecisionClass::Coarse,
    runtime::Implementation<PipelineRun>{exact_variant(runtime::Backend::Cpu), &pipeline_on_cpu},
    runtime::Implementation<PipelineRun>{
        {runtime::Backend::OpenCl, runtime::Robustness::Exact, runtime::Precision::Fp32,
         runtime::Determinism::Unordered, 0, &kPipelineNeeds},
        &pipeline_on_opencl});

// A second runtime does not know the decisions of the first.
inline void Pipeline::decide_again(std::size_t rows) {
  runtime::Runtime another(runtime_.session(), runtime_.options());
  (void)another.decide(kPipeline, {rows, Residency::Host, runtime::Backend::Cpu}).value();
}

}  // namespace kiln::test
