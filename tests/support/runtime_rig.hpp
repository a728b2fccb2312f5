#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <kiln/runtime.hpp>

#include "support/event_log.hpp"
#include "support/temporary_directory.hpp"
#include "support/variable.hpp"

namespace kiln::test {

/// A session that tells a log, without a CUDA driver unless one is named, and without what the environment of the tests
/// says about modes.
class RuntimeRig {
 public:
  Session session(const std::string& driver = {}) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}, {"driver", driver.empty() ? folder_.path("no-driver.so") : driver}};
    options.locked = {"cache.dir", "driver"};
    options.on_event = log.callback();
    return Session::open(std::move(options)).value();
  }
  std::vector<Event> events(Event::Kind kind) const { return log.of(kind); }
  /// The only event of a kind; a failure where there is none or another.
  Event only(Event::Kind kind) const {
    const std::vector<Event> all = log.of(kind);
    EXPECT_EQ(all.size(), 1U) << to_string(kind);
    return all.empty() ? Event() : all.front();
  }
  /// One for all tests of a program: a build with PoCL takes a second.
  static const std::string& cache() {
    static const TemporaryDirectory folder;
    return folder.path();
  }

  EventLog log;
  Variable mode{"KILN_EXECUTION_MODE", nullptr};
  Variable rewrites{"KILN_REWRITES", nullptr};
  Variable time_stages{"KILN_TIME_STAGES", nullptr};
  Variable calibration{"KILN_CALIBRATION", nullptr};

 private:
  const TemporaryDirectory folder_;
  const Variable home_{"HOME", folder_.path().c_str()};
  const Variable configuration_{"XDG_CONFIG_HOME", nullptr};
};

/// Whether a text has a part, with the text in the failure.
inline testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in '" << text << "'";
}

}  // namespace kiln::test
