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

namespace kiln::test {

/// What makes the pipeline below behave like CPU code, each by the name of what a program would do.
enum class Fault : unsigned char {
  WaitBetweenStages,
  WaitForDefaultStream,  // told by the program: OpenCL has none
  HiddenCopy,
  HostStep,
  SmallReads,
  LaunchPerGroup,
  AllocationInLoop,
  TinyBlock,
  HotCompile,
  SilentFallback,
  DecideAgain,
  LaunchOutside,
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
      .entry("mark")
      .entry("count")
      .entry("fill")
      .entry("scale")
      .entry("touch")
      .entry("nudge");
}
inline Needs kPipelineNeeds{"pipeline", [] { return Units{pipeline_unit()}; }};

/// A small real pipeline: keeps the rows above a half, and doubles them. Four kernels, one scalar read that sizes an
/// allocation, results materialised at the end; and in it the faults that are wanted.
class Pipeline {
 public:
  Pipeline(runtime::Dispatch& dispatch, const Faults& faults, Stream stream)
      : dispatch_(dispatch), runtime_(dispatch.runtime()), faults_(faults), stream_(std::move(stream)) {}

  Rows run(const Rows& rows);

  /// As many threads in a block as the driver would take, unless said otherwise. A mistake is an exception.
  template <class... Args>
  static void launch(Session& session, const Stream& stream, const char* kernel, std::size_t rows, unsigned block,
                     const Args&... args) {
    const Kernel ready = session.get(pipeline_unit(), kernel, std::chrono::seconds(60)).value();
    Launch how;
    how.stream = stream.native();
    how.block.x = block != 0 ? block : ready.occupancy().value().block;
    how.grid.x = static_cast<unsigned>((rows + how.block.x - 1) / how.block.x);
    ready.launch(how, args..., static_cast<int>(rows)).value();
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
  void compile_now();
  void decide_again(std::size_t rows);

  runtime::Dispatch& dispatch_;
  runtime::Runtime& runtime_;
  const Faults& faults_;
  const Stream stream_;
};

inline void Pipeline::wait_between_stages() {
  if (planted(Fault::WaitBetweenStages)) stream_.synchronise().value();
  if (!planted(Fault::WaitForDefaultStream)) return;
  Event event;
  event.kind = Event::Kind::Synchronised;
  event.message = "a wrapper waits for the default stream";
  runtime_.session().listeners()(event);
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

// A unit that nobody has asked for before: nor has any earlier test.
inline void Pipeline::compile_now() {
  static int times = 0;
  const std::string name = "unplanned" + std::to_string(++times);
  const Unit unit = Unit::opencl(name, "kernel void " + name + "(global int* x) { *x = 1; }").entry(name);
  (void)runtime_.session().get(unit, name, std::chrono::seconds(60)).value();
}

// Which rows to keep, and how many: the one scalar that sizes an allocation.
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
  const runtime::Transfer size(runtime_, Purpose::Size);
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
  if (planted(Fault::HotCompile)) compile_now();
  if (planted(Fault::DecideAgain)) decide_again(rows.size());
  int again = 0;
  for (int i = 0; planted(Fault::SmallReads) && i < 4; ++i) read(&again, counters, sizeof again);
  Rows result(kept);
  runtime::Transfer results(runtime_, Purpose::Materialise);
  read(result.data(), out, kept * sizeof(float));
  results.copied(kept * sizeof(float));
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
  // The worst of all: it says nothing, and the answer is right.
  if (faults.count(Fault::SilentFallback) != 0) return pipeline_on_cpu(dispatch, rows, faults);
  return Pipeline(dispatch, faults, dispatch.runtime().session().stream("opencl").value()).run(rows);
}

using PipelineRun = Result<Rows>(runtime::Dispatch&, const Rows&, const Faults&);
inline constexpr auto kPipeline =
    runtime::operation<PipelineRun>("test.pipeline", runtime::PrecisionClass::Coarse,
                                    runtime::Implementation<PipelineRun>{{runtime::Backend::Cpu}, &pipeline_on_cpu},
                                    runtime::Implementation<PipelineRun>{
                                        {runtime::Backend::OpenCl, runtime::Robustness::Exact, runtime::Precision::Fp32,
                                         runtime::Determinism::Unordered, 0, &kPipelineNeeds},
                                        &pipeline_on_opencl});

// Another runtime knows nothing of what the first has decided.
inline void Pipeline::decide_again(std::size_t rows) {
  runtime::Runtime another(runtime_.session(), runtime_.options());
  (void)another.decide(kPipeline, {rows, Residency::Host, runtime::Backend::Cpu}).value();
}

}  // namespace kiln::test
