// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/runtime.hpp>

#include "spatial/device/units.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {

/// One session, and therefore one cache, for all tests of a program: PoCL takes a second to compile a unit. Records all
/// events.
class SpatialSession {
 public:
  static SpatialSession& shared() {
    static SpatialSession one;
    return one;
  }

  Session& session() { return session_; }
  std::string cache_directory() const { return cache_.path("cache"); }
  /// Returns a runtime that runs everything on the OpenCL device, or fails.
  runtime::Runtime runtime() {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Gpu;
    options.devices = {runtime::Backend::OpenCl};
    options.allow_cpu_device = true;  // PoCL
    return runtime::Runtime(session_, options);
  }
  /// Returns the events since the last call.
  std::vector<Event> take_events() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  SpatialSession() : session_(Session::open(options()).value()) {}
  SessionOptions options() {
    spatial::let_pocl_keep_work_groups();
    SessionOptions options;
    options.settings["cache.dir"] = cache_.path("cache");
    options.locked = {"cache.dir"};
    options.record_undeclared = true;
    options.on_event = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
    return options;
  }

  const TemporaryDirectory cache_;
  std::mutex mutex_;
  std::vector<Event> events_;  // guarded by mutex_
  Session session_;
};

}  // namespace kiln::test
