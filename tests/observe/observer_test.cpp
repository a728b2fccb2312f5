#include "observe/observer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kiln {
namespace {

// Writes down its name with what it is told.
class NamedSink final : public EventSink {
 public:
  NamedSink(std::string name, std::vector<std::string>& told) : name_(std::move(name)), told_(told) {}
  void tell(const Event& event) override { told_.push_back(name_ + ' ' + event.message); }

 private:
  std::string name_;
  std::vector<std::string>& told_;
};

TEST(Observer, WithoutAListenerIsFalseAndTellsNobody) {
  EXPECT_FALSE(Observer());
  EXPECT_FALSE(Observer(EventCallback()));
  EXPECT_FALSE(Observer().with(nullptr));
  Observer().tell(Event{});
  Observer().tell(Event::Kind::Configuration, "", "nobody hears it");
}

TEST(Observer, TellsSinksInTheirOrderAndThenTheCallback) {
  std::vector<std::string> told;
  const Observer observer = Observer([&](const Event& event) { told.push_back("callback " + event.message); })
                                .with(std::make_shared<NamedSink>("trace", told))
                                .with(std::make_shared<NamedSink>("metrics", told));
  ASSERT_TRUE(observer);
  observer.tell(Event::Kind::Configuration, "", "x");
  EXPECT_EQ(told, (std::vector<std::string>{"trace x", "metrics x", "callback x"}));
}

TEST(Observer, IsAsLargeAsASharedPointerAndItsCopiesTellTheSame) {
  static_assert(sizeof(Observer) == sizeof(std::shared_ptr<void>));
  std::vector<std::string> told;
  Observer copy;
  {
    const Observer first = Observer().with(std::make_shared<NamedSink>("sink", told));
    copy = first;
  }
  copy.tell(Event::Kind::Configuration, "", "still there");
  EXPECT_EQ(told, std::vector<std::string>{"sink still there"});
}

TEST(Observer, LeavesTheOneThatASinkWasAddedToAsItWas) {
  std::vector<std::string> told;
  const Observer first([&](const Event&) { told.push_back("callback"); });
  const Observer second = first.with(std::make_shared<NamedSink>("sink", told));
  first.tell(Event{});
  EXPECT_EQ(told, std::vector<std::string>{"callback"});
}

}  // namespace
}  // namespace kiln
