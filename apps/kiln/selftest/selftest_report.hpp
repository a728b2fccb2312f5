// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cli::selftest {

/// The outcome of one check.
struct Outcome {
  enum class State { Passed, Failed, Skipped };
  std::string name;
  std::string description;
  State state = State::Passed;
  std::string text;  ///< what was shown, what failed, or why it was skipped
  std::string log;   ///< output of the compiler, if one failed
  double ms = 0;
};
const char* to_string(Outcome::State state);

/// A device, as its driver describes it.
struct TestedDevice {
  std::string name;
  std::string target;
  std::string memory;
  unsigned units = 0;
  bool cpu = false;
};

/// The checks of one backend.
struct BackendOutcome {
  std::string backend;  ///< cuda or opencl
  std::string absent;   ///< why nothing was tested; empty if there is a device, or if the driver failed
  std::string driver;
  bool driver_replaced = false;  ///< true if the setting `driver` names another library than the system's
  bool executed = true;          ///< false if the driver accepted launches and ran nothing
  std::vector<TestedDevice> devices;
  std::vector<Outcome> checks;

  /// Returns true if the driver crashed or did not answer when it was to describe its devices.
  bool failed_to_describe() const { return absent.empty() && devices.empty(); }
  /// Returns the row of the support matrix for this run.
  std::string matrix_row(const std::string& kiln, const std::string& date) const;
};

/// All of a run of `kiln selftest`.
struct SelftestReport {
  std::string kiln;  ///< version
  std::string date;  ///< UTC
  std::vector<std::pair<std::string, std::string>> system;
  bool quick = false;
  double seconds = 0;
  std::vector<BackendOutcome> backends;

  std::size_t count(Outcome::State state) const;
  /// Returns true if a device was tested.
  bool tested() const;
};

/// Returns a sentence that says what the run of a backend is worth.
std::string evidence_of(const BackendOutcome& backend);

/// The report for programs; its `schema_version` changes if a field is renamed, removed or gets another meaning.
std::string selftest_json(const SelftestReport& report);
/// The report for people: one page without scripts.
std::string selftest_page(const SelftestReport& report);

}  // namespace kiln::cli::selftest
