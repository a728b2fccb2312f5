// SPDX-License-Identifier: Apache-2.0
// A program for `kiln calibrate`, linked like a user's program, with two operations of known times. The device always
// takes 20 ms. The CPU takes 0.5 ms, or 100 ms from 10,000 rows for the first operation; always 0.5 ms for the second.
// The times differ by so much because a busy machine adds ten milliseconds to a sleep.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <kiln/runtime.hpp>

namespace {

using namespace kiln::runtime;
using Wait = kiln::Result<bool>(Dispatch&, std::uint64_t rows);

kiln::Result<bool> wait(Dispatch& dispatch, double ms) {
  const Stage stage(dispatch, "wait");
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  return true;
}
kiln::Result<bool> wait_by_rows(Dispatch& dispatch, std::uint64_t rows) {
  return wait(dispatch, rows < 10'000 ? 0.5 : 100);
}
kiln::Result<bool> wait_little(Dispatch& dispatch, std::uint64_t) { return wait(dispatch, 0.5); }
kiln::Result<bool> wait_on_device(Dispatch& dispatch, std::uint64_t) { return wait(dispatch, 20); }

constexpr Variant exact(Backend backend) {
  return {backend, Robustness::Exact, Precision::Fp64, Determinism::Deterministic};
}

constexpr auto kLarge =
    operation<Wait>("fake.large", PrecisionClass::Coarse, Implementation<Wait>{exact(Backend::Cpu), &wait_by_rows},
                    Implementation<Wait>{exact(Backend::OpenCl), &wait_on_device});
constexpr auto kSmall =
    operation<Wait>("fake.small", PrecisionClass::Coarse, Implementation<Wait>{exact(Backend::Cpu), &wait_little},
                    Implementation<Wait>{exact(Backend::OpenCl), &wait_on_device});

CalibrationCase calibration_case(const OperationOf<Wait, 2>& operation, std::uint64_t& rows) {
  CalibrationCase out;
  out.operation = &operation;
  out.prepare = [&rows](std::uint64_t wanted) {
    rows = wanted;
    return kiln::Status();
  };
  out.run = [&](Runtime& runtime) -> kiln::Status {
    DispatchRequest request;
    request.rows = rows;
    const kiln::Result<bool> ran = run(runtime, operation, request, rows);
    return ran ? kiln::Status() : kiln::Status(ran.error());
  };
  return out;
}

int calibrate_here(kiln::Session session, const CalibrationRequest& asked) {
  Runtime runtime(session);
  std::uint64_t rows = 0;
  CalibrationOptions options = asked.options;
  options.seconds_per_size = 0.2;  // up to ten times that if five runs take so long
  options.refinements = 0;
  const auto calibration =
      calibrate(runtime, {calibration_case(kLarge, rows), calibration_case(kSmall, rows)}, options);
  const kiln::Status written = calibration ? calibration->write(asked.path) : kiln::Status(calibration.error());
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  const std::string mode = count > 1 ? values[1] : "answer";
  const auto asked = requested_calibration();
  if (mode == "fail") return 7;
  if (mode == "crash") std::abort();
  if (mode == "nonsense" && asked) std::ofstream(asked->path) << "nonsense";
  std::printf("this is for people\n");
  if (mode == "decide") {  // prints where it would run this many rows of the first operation, and why
    DispatchRequest request;
    request.rows = std::strtoull(values[2], nullptr, 10);
    Runtime runtime(kiln::Session::open().value());
    const auto decision = runtime.decide(kLarge, request);
    std::printf("%s\n", decision ? decision->explanation.c_str() : decision.error().message.c_str());
    return decision && decision->selected == Backend::OpenCl ? 10 : 11;
  }
  if (mode != "answer" || !asked) return 0;
  return calibrate_here(kiln::Session::open().value(), *asked);
}
