// SPDX-License-Identifier: Apache-2.0
// Sources that harm the compiler must not harm the program that requested the compile. Every host is a forked child, so
// that its death is detected; this process itself does not use kiln.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <kiln/kiln.hpp>

#include "backends/opencl/opencl_compiler.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

using Settings = std::map<std::string, std::string>;

enum class Language : std::uint8_t { Cuda, OpenCl };

/// The report of a host process after one request. `ended` is false if the process died.
struct HostReport {
  bool ended = false;
  std::string outcome;        // "artifact" or the error code
  std::string message;        // error message
  std::string unavailable;    // message of the worker_unavailable event
  long peak_megabytes = 0;    // peak memory of the host process
  std::size_t workers = 0;    // workers that the host process started
  std::size_t published = 0;  // number of published events
};

std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' || c == '\t' ? ' ' : c;
  return text;
}

long own_peak_megabytes() {
  std::istringstream status(read_text("/proc/self/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + 6) / 1024;
  }
  return -1;
}

Unit unit_of(Language language, const std::string& name, const std::string& globals, const std::string& statement) {
  const bool is_cuda = language == Language::Cuda;
  const std::string head = is_cuda ? "extern \"C\" __global__ void k(int* x)" : "__kernel void k(__global int* x)";
  const std::string source = globals + head + " { int a = x[0]; x[1] = " + statement + "; }\n";
  return is_cuda ? Unit::cuda(name + ".cu", source) : Unit::opencl(name + ".cl", source);
}

Unit small_unit(Language language) { return unit_of(language, "small", "", "a + 1"); }

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

/// Returns macros in which `name`0 is the text and each further macro is ten of the one before: `name`7 is ten million.
std::string ladder(const std::string& name, const std::string& text) {
  std::string macros = "#define " + name + "0 " + text + "\n";
  for (int i = 1; i <= 7; ++i) {
    macros += "#define " + name + std::to_string(i) + " " + repeated(name + std::to_string(i - 1) + " ", 10) + "\n";
  }
  return macros;
}

/// Less than a kilobyte of source that takes gigabytes: NVRTC uses 300 MB after one second and 1.4 GB after six.
Unit macro_bomb(Language language) {
  if (language == Language::Cuda) return unit_of(language, "bomb", ladder("L", "(") + ladder("R", ")"), "L7 a R7");
  return unit_of(language, "bomb", ladder("B", "1,") + "#define C(x) x\n__constant int table[] = { C(B7 B7 B7) };\n",
                 "table[5]");
}

class HostileSources : public testing::TestWithParam<Language> {
 protected:
  void SetUp() override {
    if (GetParam() == Language::Cuda && toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit here";
    if (GetParam() == Language::OpenCl && !opencl_installed()) GTEST_SKIP() << "no OpenCL driver here";
  }

  /// Requests the unit with these settings in a new process.
  HostReport host_with(const Unit& unit, const Settings& settings) {
    const std::string cache = directory_.path("cache");
    const Forked child([&](const Forked::Side& side) {
      SessionOptions options;
      EventLog log;
      options.settings = {{"cache.dir", cache}, {"jobs", "1"}, {"nvrtc", toolkit_nvrtc()}};
      for (const auto& [name, value] : settings) options.settings.insert_or_assign(name, value);
      options.on_event = log.callback();
      auto session = Session::open(options);
      if (!session) return;
      Target target = Target{"sm_80", Form::Ptx};
      if (unit.kind() == "opencl") target = opencl_devices().value().front().target;
      const auto artifact = session->artifact(unit, target);
      const auto said = log.of(Event::Kind::WorkerUnavailable);
      side.say(std::string(artifact ? "artifact" : to_string(artifact.error().code)) + '\t' +
               one_line(artifact ? "" : artifact.error().message) + '\t' +
               one_line(said.empty() ? "" : said.front().message) + '\t' + std::to_string(own_peak_megabytes()) + '\t' +
               std::to_string(workers_of(getpid()).size()) + '\t' + std::to_string(log.count(Event::Kind::Published)));
    });
    std::istringstream line(child.line(kHangTimeout));
    HostReport report;
    const auto next = [&] {
      std::string field;
      std::getline(line, field, '\t');
      return field;
    };
    report.outcome = next();
    report.ended = !report.outcome.empty();
    report.message = next();
    report.unavailable = next();
    report.peak_megabytes = std::atol(next().c_str());
    report.workers = static_cast<std::size_t>(std::atol(next().c_str()));
    report.published = static_cast<std::size_t>(std::atol(next().c_str()));
    return report;
  }

  const TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Of, HostileSources, testing::Values(Language::Cuda, Language::OpenCl), [](const auto& tested) {
  return std::string(tested.param == Language::Cuda ? "Cuda" : "OpenCl");
});

// The recursion of both compilers overflows the stack of a thread of the session; NVRTC survives in a main thread.
TEST_P(HostileSources, LongExpressionDoesNotCrashHost) {
  const std::string expression = GetParam() == Language::Cuda
                                     ? std::string(100'000, '(') + "a" + std::string(100'000, ')')
                                     : "a" + repeated("+a", 50'000);
  const HostReport host = host_with(unit_of(GetParam(), "long", "", expression), {{"worker.memory", "1G"}});
  ASSERT_TRUE(host.ended) << "the host process died";
  EXPECT_LT(host.peak_megabytes, 200) << "the compiler ran in the host";
  if (GetParam() == Language::OpenCl) {
    EXPECT_EQ(host.outcome, "compile_failed") << host.message;
    EXPECT_NE(host.message.find("quarantined"), std::string::npos) << host.message;
  }
}

TEST_P(HostileSources, MacroBombDoesNotGrowHostMemory) {
  // NVRTC continues for minutes after a failed allocation, so a time limit is set too.
  const HostReport host = host_with(macro_bomb(GetParam()), {{"worker.memory", "512M"}, {"worker.time_limit", "4"}});
  ASSERT_TRUE(host.ended) << "the host process died";
  EXPECT_EQ(host.outcome, "compile_failed") << host.message;
  EXPECT_LT(host.peak_megabytes, 200) << "the compiler ran in the host";
}

TEST_P(HostileSources, SmallUnitsCompileInWorkerAndAreCached) {
  const HostReport host = host_with(small_unit(GetParam()), {});
  EXPECT_EQ(host.outcome, "artifact") << host.message;
  EXPECT_EQ(host.workers, 1u);
  EXPECT_EQ(host.published, 1u);
  EXPECT_EQ(host.unavailable, "");
  // The artifact of a worker is found under the key that the host uses.
  const HostReport again = host_with(small_unit(GetParam()), {{"compile", "never"}});
  EXPECT_EQ(again.outcome, "artifact") << again.message;
  EXPECT_EQ(again.workers, 0u);
}

TEST_P(HostileSources, CompilesInProcessWithWarningIfWorkerProgramIsMissing) {
  const HostReport host = host_with(small_unit(GetParam()), {{"worker.path", directory_.path("missing")}});
  EXPECT_EQ(host.outcome, "artifact") << host.message;
  EXPECT_EQ(host.workers, 0u);
  EXPECT_EQ(host.published, 1u) << "a unit that reads no file is cached";
  EXPECT_NE(host.unavailable.find("kiln-worker was not found"), std::string::npos) << host.unavailable;
  EXPECT_EQ(host.unavailable.find("not cached"), std::string::npos) << host.unavailable;
}

TEST_P(HostileSources, InProcessIsASetting) {
  const HostReport host = host_with(small_unit(GetParam()), {{"compile.in_process", "closed"}});
  EXPECT_EQ(host.outcome, "artifact") << host.message;
  EXPECT_EQ(host.workers, 0u);
  EXPECT_EQ(host.published, 1u);
  EXPECT_EQ(host.unavailable, "") << "the setting must not cause a warning";
}

TEST_P(HostileSources, InProcessIsASettingPerOpenClDevice) {
  // For devices only: CUDA units still compile in a worker.
  const HostReport host = host_with(small_unit(GetParam()), {{"opencl.in_process", "another:*,pocl:*"}});
  EXPECT_EQ(host.outcome, "artifact") << host.message;
  EXPECT_EQ(host.workers, GetParam() == Language::OpenCl ? 0u : 1u);
  EXPECT_EQ(host.unavailable, "");
}

// A worker with other drivers than the host must not compile for the host's device.
TEST_P(HostileSources, WorkerWithoutTheDeviceIsReported) {
  if (GetParam() != Language::OpenCl) GTEST_SKIP() << "NVRTC needs no device";
  const std::string program = std::filesystem::canonical("/proc/self/exe").parent_path().string() + "/kiln-worker";
  const std::string wrapper = directory_.path("kiln-worker");
  write_text(wrapper,
             "#!/bin/sh\nexport OCL_ICD_VENDORS=" + directory_.path("none") + "/\nexec " + program + " \"$@\"\n");
  ASSERT_EQ(chmod(wrapper.c_str(), 0755), 0);
  const HostReport host = host_with(small_unit(GetParam()), {{"worker.path", wrapper}});
  EXPECT_EQ(host.outcome, "artifact") << host.message;
  EXPECT_EQ(host.published, 1u);
  EXPECT_NE(host.unavailable.find("does not have the opencl compiler"), std::string::npos) << host.unavailable;
  EXPECT_NE(host.unavailable.find("KILN_OPENCL_IN_PROCESS"), std::string::npos) << host.unavailable;
}

}  // namespace
}  // namespace kiln::test
