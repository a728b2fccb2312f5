// SPDX-License-Identifier: Apache-2.0
#include "events/event_emitter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {
namespace {

// A sink that records its name with each message.
class NamedSink final : public EventSink {
 public:
  NamedSink(std::string name, std::vector<std::string>& reported) : name_(std::move(name)), reported_(reported) {}
  void on_event(const Event& event) override { reported_.push_back(name_ + ' ' + event.message); }

 private:
  std::string name_;
  std::vector<std::string>& reported_;
};

TEST(Observer, IsFalseWithoutListeners) {
  EXPECT_FALSE(EventEmitter());
  EXPECT_FALSE(EventEmitter(EventCallback()));
  EXPECT_FALSE(EventEmitter().with_sink(nullptr));
  EventEmitter().emit(Event{});
  EventEmitter().emit(Event::Kind::ConfigWarning, "", "not received");
}

TEST(Observer, CallbackCanBeSwitchedOff) {
  std::vector<std::string> reported;
  std::atomic<bool> enabled{false};
  const EventEmitter emitter([&](const Event&) { reported.emplace_back("callback"); }, &enabled);
  EXPECT_FALSE(emitter);
  EXPECT_TRUE(emitter.has_listeners()) << "it can be switched on";
  EXPECT_FALSE(EventEmitter().has_listeners());
  EXPECT_FALSE(emitter.callback());
  emitter.emit(Event{});
  EXPECT_TRUE(reported.empty());
  const EventEmitter both = emitter.with_sink(std::make_shared<NamedSink>("sink", reported));
  EXPECT_TRUE(both);
  both.emit(Event{});
  EXPECT_EQ(reported, std::vector<std::string>{"sink "});
  enabled = true;
  EXPECT_TRUE(emitter);
  both.emit(Event{});
  EXPECT_EQ(reported, (std::vector<std::string>{"sink ", "sink ", "callback"}));
}

TEST(Observer, CallsSinksInOrderThenCallback) {
  std::vector<std::string> reported;
  const EventEmitter emitter =
      EventEmitter([&](const Event& event) { reported.push_back("callback " + event.message); })
          .with_sink(std::make_shared<NamedSink>("trace", reported))
          .with_sink(std::make_shared<NamedSink>("metrics", reported));
  ASSERT_TRUE(emitter);
  emitter.emit(Event::Kind::ConfigWarning, "", "x");
  EXPECT_EQ(reported, (std::vector<std::string>{"trace x", "metrics x", "callback x"}));
}

TEST(Observer, CopiesShareListeners) {
  static_assert(sizeof(EventEmitter) == sizeof(std::shared_ptr<void>));
  std::vector<std::string> reported;
  EventEmitter copy;
  {
    const EventEmitter first = EventEmitter().with_sink(std::make_shared<NamedSink>("sink", reported));
    copy = first;
  }
  copy.emit(Event::Kind::ConfigWarning, "", "still there");
  EXPECT_EQ(reported, std::vector<std::string>{"sink still there"});
}

TEST(EventStream, LegacyStreamOfCudaIsZero) {
  const auto handle = [](std::uintptr_t value) { return reinterpret_cast<void*>(value); };
  EXPECT_EQ(event_stream(nullptr), 0U);
  EXPECT_EQ(event_stream(handle(1)), 0U);
  EXPECT_EQ(event_stream(handle(2)), 2U) << "the per-thread stream is another one";
  EXPECT_EQ(event_stream(handle(0xabc)), 0xabcU);
}

TEST(Observer, AddingSinkLeavesOriginalUnchanged) {
  std::vector<std::string> reported;
  const EventEmitter first([&](const Event&) { reported.push_back("callback"); });
  const EventEmitter second = first.with_sink(std::make_shared<NamedSink>("sink", reported));
  first.emit(Event{});
  EXPECT_EQ(reported, std::vector<std::string>{"callback"});
}

}  // namespace
}  // namespace kiln
