// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>

/// The checks of `kiln selftest`. Inside of this namespace a failure is a ResultError; `run_check` returns it as an
/// error.
namespace kiln::cli::selftest {

/// The backend under test and the directory of the checks. A value; each check runs in its own process with a copy.
struct Subject {
  Backend backend = Backend::Cuda;
  std::string directory;  ///< the only directory that the checks write to
  std::string nvrtc;      ///< path of libnvrtc; empty means search, as for the next three
  std::string cccl;
  std::string driver;
  std::string worker;
  bool quick = false;
  bool executes = true;  ///< false if the driver accepts launches and runs nothing, as the fake driver of the tests

  /// Returns the options of a session that reads no configuration of the user and writes below `directory` only.
  SessionOptions options() const;
};

/// The result of a check that did not fail: what it showed, or why it was skipped.
struct Shown {
  std::string text;
  bool skipped = false;
  bool executed = true;  ///< false if the check found that the driver runs nothing

  static Shown skip(std::string reason) { return {std::move(reason), true}; }
};

/// One check. The function runs once, in a new process.
struct Check {
  const char* name;
  const char* description;
  Result<Shown> (*run)(const Subject& subject);
};

/// Returns the checks of a backend, in order: later ones use what earlier ones compiled.
std::span<const Check> checks_of(Backend backend);
/// Runs a check and returns its exception, if it throws one, as an error.
Result<Shown> run_check(const Check& check, const Subject& subject);

/// Returns the driver, the devices and the compilers of a backend as JSON text. An error names what is missing.
Result<std::string> describe(const Subject& subject);

/// An open session with a stream on the first device.
struct Bench {
  Session session;
  Stream stream;
  DeviceInfo device;

  static Bench open(const Subject& subject, SessionOptions options);
  static Bench open(const Subject& subject) { return open(subject, subject.options()); }
};

/// Returns the unit with the kernels `saxpy` and `scale` (for CUDA `scale<float>`).
Unit sample_unit(Backend backend);
std::string scale_entry(Backend backend);

/// The number of elements of a check.
inline std::size_t sample_size(const Subject& subject) { return subject.quick ? 10'000 : 1'000'000; }

[[noreturn]] void fail(std::string message);

/// Fails unless the vectors are equal. Compares nothing if the driver runs nothing.
template <class T>
void expect_equal(const Subject& subject, const std::vector<T>& found, const std::vector<T>& expected,
                  const std::string& what) {
  if (!subject.executes) return;
  if (found.size() != expected.size()) fail(what + ": wrong number of elements");
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    fail(what + ": element " + std::to_string(i) + " is " + std::to_string(found[i]) + " instead of " +
         std::to_string(expected[i]));
  }
}

/// Computes y = a x + y on the stream and returns y. `expected`, if not null, gets the result of the host.
std::vector<float> run_saxpy(const KernelRef& kernel, const Stream& stream, std::size_t count,
                             std::vector<float>* expected);
/// The same; fails if the result is wrong.
void check_saxpy(const Subject& subject, const KernelRef& kernel, const Stream& stream, std::size_t count);

// The checks, by source file: kernel_checks.cpp, cuda_checks.cpp, cccl_checks.cpp.
Result<Shown> check_compile(const Subject& subject);
Result<Shown> check_load(const Subject& subject);
Result<Shown> check_launch(const Subject& subject);
Result<Shown> check_cache(const Subject& subject);
Result<Shown> check_streams(const Subject& subject);
Result<Shown> check_threads(const Subject& subject);
Result<Shown> check_rejections(const Subject& subject);
Result<Shown> check_audit(const Subject& subject);
Result<Shown> check_shared_memory(const Subject& subject);
Result<Shown> check_contexts(const Subject& subject);
Result<Shown> check_graphs(const Subject& subject);
Result<Shown> check_memory_tiers(const Subject& subject);
Result<Shown> check_cccl_calls(const Subject& subject);

}  // namespace kiln::cli::selftest
