// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "apps/kiln/jit/fill.hpp"
#include "apps/kiln/jit/plan.hpp"
#include "apps/kiln/jit/publish.hpp"
#include "apps/kiln/output/console.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {

/// What all commands for other systems need: the rules, the installed systems, the session and the limits. `fill` and
/// `publish` can be called by any thread; the rest is not thread-safe.
class JitCommand {
 public:
  /// Returns an error of the command line or of the rules. `command` is the command whose environment counts; empty
  /// means the active one.
  static Result<std::unique_ptr<JitCommand>> open(const Arguments& arguments, Console& console,
                                                  const std::vector<std::string>& command = {});

  /// Emits an event for each installed version that no rule covers, and for each name of jit.host_code that is unknown.
  /// That host code is off is no event: it is the default.
  void report_unknown_names() const;
  /// Leaves out the systems whose variable would name a directory that cannot be used: they keep their own.
  void check_roots(Console& console);

  /// Fill or publish all systems that are not skipped, and emit what happened as events.
  std::vector<jit::FillReport> fill() const;
  std::vector<jit::PublishReport> publish(std::chrono::nanoseconds settle) const;

  jit::Limits limits;
  std::vector<jit::Rule> rules;
  std::unique_ptr<Session> session;
  std::vector<jit::SystemPlan> plans;
  std::string profile;
  std::vector<std::string> host_code;  ///< systems whose host code is used

 private:
  JitCommand() = default;
  void warn(const std::string& system, const std::string& message) const;
};

/// Returns the directory below which `kiln run` has the caches of other systems; empty if there is no cache.
std::string own_roots(const Config& config);
/// Returns the paths of the entries in a root; none if the root cannot be used.
std::vector<std::string> root_entries(const jit::SystemPlan& plan);

}  // namespace kiln::cli
