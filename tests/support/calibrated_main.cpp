// A program for `kiln calibrate`, linked as a user's is, with two operations whose times are known: the device takes 20
// ms whatever there is to do, and the processor 0.5 ms, or 100 ms from 10,000 rows on; of the second always 0.5 ms.
// They lie so far apart since a machine with much to do adds ten milliseconds to a sleep.
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

constexpr auto kLarge =
    operation<Wait>("fake.large", PrecisionClass::Coarse, Implementation<Wait>{{Backend::Cpu}, &wait_by_rows},
                    Implementation<Wait>{{Backend::OpenCl}, &wait_on_device});
constexpr auto kSmall =
    operation<Wait>("fake.small", PrecisionClass::Coarse, Implementation<Wait>{{Backend::Cpu}, &wait_little},
                    Implementation<Wait>{{Backend::OpenCl}, &wait_on_device});

Trial trial(const OperationOf<Wait, 2>& operation, std::uint64_t& rows) {
  Trial out;
  out.operation = &operation;
  out.prepare = [&rows](std::uint64_t wanted) {
    rows = wanted;
    return kiln::Status();
  };
  out.run = [&](Runtime& runtime) -> kiln::Status {
    Request request;
    request.rows = rows;
    const kiln::Result<bool> ran = run(runtime, operation, request, rows);
    return ran ? kiln::Status() : kiln::Status(ran.error());
  };
  return out;
}

int calibrate_here(kiln::Session session, const CalibrationAsked& asked) {
  Runtime runtime(session);
  std::uint64_t rows = 0;
  CalibrationOptions options = asked.options;
  options.seconds_per_size = 0.2;  // and ten times that, if five runs take so long
  options.refinements = 0;
  const auto calibration = calibrate(runtime, {trial(kLarge, rows), trial(kSmall, rows)}, options);
  const kiln::Status written = calibration ? calibration->write(asked.path) : kiln::Status(calibration.error());
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  const std::string manner = count > 1 ? values[1] : "answer";
  const auto asked = calibration_asked_for();
  if (manner == "fail") return 7;
  if (manner == "crash") std::abort();
  if (manner == "nonsense" && asked) std::ofstream(asked->path) << "nonsense";
  std::printf("this is for people\n");
  if (manner == "decide") {  // where it would run so many rows of the first, and why
    Request request;
    request.rows = std::strtoull(values[2], nullptr, 10);
    Runtime runtime(kiln::Session::open().value());
    const auto decision = runtime.decide(kLarge, request);
    std::printf("%s\n", decision ? decision->text.c_str() : decision.error().message.c_str());
    return decision && decision->selected == Backend::OpenCl ? 10 : 11;
  }
  if (manner != "answer" || !asked) return 0;
  return calibrate_here(kiln::Session::open().value(), *asked);
}
