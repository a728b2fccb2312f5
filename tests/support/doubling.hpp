#pragma once

#include <vector>

#include "base/error.hpp"
#include "support/runtime_rig.hpp"

namespace kiln::test {

using Numbers = std::vector<float>;

inline Unit doubling_unit() {
  return Unit::opencl("doubling", "kernel void scale(global float* x) { x[get_global_id(0)] *= 2; }").entry("scale");
}
inline Needs kDoublingNeeds{"doubling", [] { return Units{doubling_unit()}; }};

inline Result<Numbers> double_on_cpu(runtime::Dispatch& dispatch, const Numbers& numbers) {
  const runtime::Stage stage(dispatch, "scale");
  Numbers answer = numbers;
  for (float& number : answer) number *= 2;
  return answer;
}

inline Result<Numbers> double_on_opencl(runtime::Dispatch& dispatch, const Numbers& numbers) {
  runtime::Runtime& runtime = dispatch.runtime();
  const auto kernel = runtime.session().get(doubling_unit(), "scale", std::chrono::seconds(60));
  if (!kernel) return kernel.error();
  const auto stream = runtime.session().stream("opencl");
  if (!stream) return stream.error();
  const auto buffer = [&] {
    const runtime::Transfer input(runtime, Purpose::Input);
    return stream->copy_of(numbers);
  }();
  if (!buffer) return buffer.error();
  {
    const runtime::Stage stage(dispatch, "scale", &*stream);
    Launch how;
    how.stream = stream->native();
    how.grid.x = static_cast<unsigned>(numbers.size());
    if (const Status launched = kernel->launch(how, *buffer); !launched) return launched.error();
  }
  Numbers answer(numbers.size());
  runtime::Transfer out(runtime, Purpose::Materialise);
  const std::size_t bytes = answer.size() * sizeof answer.front();
  if (const Status copied = stream->download(answer.data(), *buffer, bytes); !copied) return copied.error();
  out.copied(bytes);
  return answer;
}

/// Doubles numbers: on the processor, and from a hundred of them on with OpenCL.
using Doubling = Result<Numbers>(runtime::Dispatch&, const Numbers&);
inline constexpr auto kDoubling = runtime::operation<Doubling>(
    "doubling", runtime::PrecisionClass::Metric,
    runtime::Implementation<Doubling>{{runtime::Backend::Cpu}, &double_on_cpu},
    runtime::Implementation<Doubling>{{runtime::Backend::OpenCl, runtime::Robustness::Exact, runtime::Precision::Fp32,
                                       runtime::Determinism::Deterministic, 100, &kDoublingNeeds},
                                      &double_on_opencl});

inline Result<Numbers> doubled(runtime::Runtime& runtime, std::size_t count) {
  runtime::Request request;
  request.rows = count;
  return runtime::run(runtime, kDoubling, request, Numbers(count, 1.0F));
}

/// Fails on the device, as it is told to.
constexpr int kOfCpu = 7;
inline Result<int> succeed(runtime::Dispatch&, Code) { return kOfCpu; }
inline Result<int> fail(runtime::Dispatch&, Code code) { return failure(code, "as it was told to"); }
using Failing = Result<int>(runtime::Dispatch&, Code);
inline constexpr auto kFailing = runtime::operation<Failing>(
    "failing", runtime::PrecisionClass::Metric, runtime::Implementation<Failing>{{runtime::Backend::Cpu}, &succeed},
    runtime::Implementation<Failing>{{runtime::Backend::OpenCl}, &fail});

}  // namespace kiln::test
