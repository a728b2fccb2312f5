// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/runtime/events.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/stream.hpp>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {

// Small, because the driver double fills every allocation.
constexpr std::size_t kPiece = std::size_t{16} << 10;

/// A program with a session that uses a memory tier, on the driver double; no GPU is involved.
class MemoryTest : public testing::Test {
 protected:
  struct Program {
    runtime::Memory memory;
    Session session;
    std::optional<Stream> stream;

    Status reserve(std::vector<Buffer>& into, std::size_t bytes) const {
      auto buffer = stream->allocate(bytes);
      if (!buffer) return buffer.error();
      into.push_back(*std::move(buffer));
      return {};
    }
  };

  SessionOptions session_options() {
    SessionOptions made;
    made.settings = {{"cache.dir", cache_.path("cache")}, {"driver", FakeCudaDriver::path()}};
    made.on_event = log_.callback();
    return made;
  }
  /// Makes the primary context of the device current on this thread.
  Program open(runtime::MemoryOptions options, std::size_t device = 0) {
    const runtime::Memory memory(std::move(options));
    Session session = runtime::open_session(session_options(), memory).value();
    EXPECT_TRUE(session.make_current(kiln::Backend::Cuda, device).has_value());
    auto stream = session.stream(kiln::Backend::Cuda);
    EXPECT_TRUE(stream.has_value());
    return {memory, session, *std::move(stream)};
  }
  /// Returns the free memory of device 0. One of its contexts must be current.
  std::size_t available() const {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(driver_.application().MemGetInfo(&free, &total), cuda::DriverResult::Success);
    return free;
  }
  template <class Kind>
  std::vector<Event> events(const Kind& kind) const {
    return log_.of(kind);
  }
  void expect_nothing_left() const {
    EXPECT_EQ(driver_.leaks(), 0U);
    EXPECT_EQ(driver_.stale_uses(), 0U);
    EXPECT_EQ(driver_.counts().relaxed_threads, 0U);
  }

  ScopedEnv tier_variable_{"KILN_MEMORY_TIER", nullptr};
  ScopedEnv limit_variable_{"KILN_MEMORY_LIMIT", nullptr};
  ScopedEnv retries_variable_{"KILN_OOM_RETRIES", nullptr};
  TemporaryDirectory cache_;
  EventLog log_;
  FakeCudaDriver driver_{"sm_80,sm_90"};
};

inline bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace kiln::test
