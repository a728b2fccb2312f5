// SPDX-License-Identifier: Apache-2.0
#include <kiln/stream.hpp>

#include "examples/series_trial.hpp"

#include <memory>
#include <vector>

namespace kiln::test {
namespace {

using namespace kiln::runtime;
using runtime::Backend;
using Values = std::vector<float>;
using Series = Result<Values>(Dispatch&, const Values&);

constexpr unsigned kBlock = 64;
constexpr std::size_t kVector = 16;  // columns are padded to a multiple of it

Unit unit() {
  return Unit::opencl("series.cl", R"(
    kernel void series(int vectors, global const float16* x, global float16* y) {
      const int at = get_global_id(0);
      if (at >= vectors) return;
      const float16 value = x[at];
      float16 sum = 0;
      for (int term = 64; term > 0; --term) sum = value * (sum + 1.0f) * (1.0f / 65);
      y[at] = sum;
    })")
      .with_entry("series");
}
const Requirements requirements{"series", [] { return Units{unit()}; }};

Result<Values> on_cpu(Dispatch& dispatch, const Values& x) {
  const Stage stage(dispatch, "series");
  Values y(x.size());
  for (std::size_t row = 0; row < x.size(); ++row) {
    float sum = 0;
    for (int term = 64; term > 0; --term) sum = x[row] * (sum + 1.0f) * (1.0f / 65);
    y[row] = sum;
  }
  return y;
}

Result<Values> on_opencl(Dispatch& dispatch, const Values& x) {
  Session& session = dispatch.runtime().session();
  static const KernelHandle handle = session.handle(unit(), "series");
  static const Result<Stream> stream = session.stream(kiln::Backend::OpenCl);
  if (!stream) return stream.error();
  const Result<Kernel> kernel = handle.get();
  if (!kernel) return kernel.error();
  const Result<Buffer> in = stream->copy_of(x);
  if (!in) return in.error();
  const Result<Buffer> out = stream->allocate(in->size());
  if (!out) return out.error();
  {
    const Stage stage(dispatch, "series", &*stream);
    const std::size_t vectors = x.size() / kVector;
    const auto blocks = static_cast<unsigned>((vectors + kBlock - 1) / kBlock);
    const LaunchConfig config(Grid(blocks), Block(kBlock), *stream);
    if (Status launched = kernel->launch(config, static_cast<int>(vectors), *in, *out); !launched) {
      return launched.error();
    }
  }
  Values y(x.size());
  if (Status copied = stream->download(y.data(), *out, out->size()); !copied) return copied.error();
  return y;
}

constexpr auto kSeries = operation<Series>(
    "campaign.series", PrecisionClass::Metric,
    Implementation<Series>{{Backend::Cpu, Robustness::Bounded, Precision::Fp64, Determinism::Deterministic}, &on_cpu},
    Implementation<Series>{{Backend::OpenCl, Robustness::Bounded, Precision::Fp64, Determinism::Deterministic,
                            kNoCrossover, &requirements},
                           &on_opencl});

}  // namespace

CalibrationCase series_trial() {
  const auto x = std::make_shared<Values>();
  const auto asked = std::make_shared<std::uint64_t>(0);
  CalibrationCase calibration_case;
  calibration_case.operation = &kSeries;
  calibration_case.prepare = [x, asked](std::uint64_t rows) {
    *asked = rows;
    x->resize((rows + kVector - 1) / kVector * kVector);
    for (std::size_t row = 0; row < x->size(); ++row) (*x)[row] = static_cast<float>(row % 64);
    return Status();
  };
  calibration_case.run = [x, asked](Runtime& runtime) -> Status {
    DispatchRequest request;
    request.rows = *asked;
    const Result<Values> y = run(runtime, kSeries, request, *x);
    return y ? Status() : Status(y.error());
  };
  return calibration_case;
}

}  // namespace kiln::test
