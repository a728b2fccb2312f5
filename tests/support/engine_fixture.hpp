#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/scripted_work.hpp"
#include "support/stepped_clock.hpp"
#include "warm/engine.hpp"

namespace kiln::test {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;
using State = UnitStatus::State;

/// An engine in a world of scripts. Time stands still: a get that has a limit waits for the test, not for the machine.
/// Engines are made by the tests, so that they are gone before what they were told of.
class EngineTest : public testing::Test {
 protected:
  using Got = Result<const Answer*>;

  Engine::Parts parts() { return work_.parts(log_.observer(), clock_); }
  static Order order(const std::string& name) { return ScriptedWork::order(name); }
  static void request(Engine& engine, const Strings& names) { engine.request(ScriptedWork::orders(names)); }
  static Got get(Engine& engine, const std::string& name, std::chrono::nanoseconds limit = kForever) {
    return engine.get(order(name), limit);
  }
  /// A get in a thread of its own.
  static std::future<Got> getting(Engine& engine, const std::string& name, std::chrono::nanoseconds limit = kForever) {
    return std::async(std::launch::async, [&engine, name, limit] { return get(engine, name, limit); });
  }
  static std::string text(const Got& got) { return got ? std::string((*got)->artifact.bytes.view()) : "no answer"; }
  static Code code(const Got& got) { return got ? Code::Internal : got.error().code; }
  static std::map<std::string, UnitStatus::State> states(const Engine& engine) {
    std::map<std::string, UnitStatus::State> found;
    for (const UnitStatus& unit : engine.status().units) found[unit.unit] = unit.state;
    return found;
  }
  static bool settles(const Engine& engine) {
    return eventually([&] { return engine.status().pending == 0; });
  }

  SteppedClock clock_;
  EventLog log_;
  ScriptedWork work_;
};

}  // namespace kiln::test
