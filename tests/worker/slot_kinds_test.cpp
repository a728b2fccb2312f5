// SPDX-License-Identifier: Apache-2.0
// Slots for urgent work, extra slots, and the state that processes publish to each other.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"
#include "worker/worker_slots.hpp"

namespace kiln::test {
namespace {

TEST(WorkerSlots, IgnoreRequestsOfStoppedProcess) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  const auto requester = [&](const Forked::Side& side) {
    const WorkerSlots::SlotRequest requests[] = {slots.announce_request(), slots.announce_request(true),
                                                 slots.announce_request(true)};
    side.say("requested");
    (void)side.receive();
  };
  const Forked stopped(requester);
  ASSERT_EQ(stopped.line(), "requested");
  EXPECT_TRUE(slots.has_other_waiters());
  EXPECT_TRUE(slots.urgent_elsewhere());
  kill(stopped.id(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return !slots.has_other_waiters() && !slots.urgent_elsewhere(); }));
  const Forked other(requester);
  ASSERT_EQ(other.line(), "requested");
  EXPECT_TRUE(slots.has_other_waiters()) << "the next request is from a process that is not stopped";
  EXPECT_TRUE(slots.urgent_elsewhere());
  kill(stopped.id(), SIGCONT);
}

TEST(WorkerSlots, ReservedSlotIsSeparate) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  std::vector<WorkerSlots::Slot> general;
  for (int i = 0; i < 64; ++i) general.push_back(slots.take(64).value());
  auto reserved = slots.take_reserved();
  EXPECT_TRUE(reserved);
  EXPECT_FALSE(slots.take_reserved());
  auto extra = slots.take_extra(0);
  EXPECT_TRUE(extra);
  EXPECT_FALSE(slots.take_extra(0));
  EXPECT_FALSE(slots.take_extra(WorkerSlots::kMaxExtras));
  const WorkerSlots::SlotRequest plain = slots.announce_request();
  const Forked child([&](const Forked::Side& side) {
    side.say(slots.take_reserved() || slots.take_extra(0) ? "taken" : "held");
    side.say(slots.has_other_waiters() && !slots.urgent_elsewhere() ? "plain" : "urgent");
  });
  EXPECT_EQ(child.line(), "held");
  EXPECT_EQ(child.line(), "plain");
}

TEST(WorkerSlots, ReportHolderAndItsWorker) {
  using Holder = WorkerSlots::Holder;
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  std::vector<WorkerSlots::Slot> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(slots.take(2).value());
  taken[1].show_worker(77);
  taken[1].show_worker(88);
  auto reserved = slots.take_reserved();
  reserved->show_worker(99);
  const std::vector<Holder> here = slots.holders(0, 3);
  EXPECT_EQ(here, (std::vector<Holder>{{true, getpid(), 0}, {true, getpid(), 88}, {false, 0, 0}}));
  const pid_t parent = getpid();
  const Forked child([&](const Forked::Side& side) {
    const std::vector<Holder> seen = slots.holders(0, 3);
    side.say(seen[0].process == parent && seen[1].process == parent && !seen[2].is_held ? "parent" : "wrong");
    for (const Holder& one : {seen[0], seen[1], slots.holders(WorkerSlots::kReserved, 1)[0]}) {
      side.say(std::to_string(one.worker));
    }
    (void)side.receive();
    side.say(std::to_string(slots.holders(1, 1)[0].worker));
  });
  for (const char* line : {"parent", "0", "88", "99"}) EXPECT_EQ(child.line(), line);
  taken[1].show_worker(0);
  child.say("look");
  EXPECT_EQ(child.line(), "0");
}

TEST(WorkerSlots, AwaitedRequestIsVisibleToAllProcesses) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  Digest request{};
  request.bytes[3] = 9;
  Digest other = request;
  other.bytes[4] = 1;
  EXPECT_FALSE(slots.is_awaited(request));
  const auto seen_by_a_child = [&] {
    const Forked child([&](const Forked::Side& side) {
      side.say(std::to_string(int{slots.is_awaited(request)}) + std::to_string(int{slots.is_awaited(other)}));
    });
    return child.line();
  };
  {
    const WorkerSlots::SlotRequest awaited = slots.await(request);
    EXPECT_TRUE(slots.is_awaited(request));
    EXPECT_FALSE(slots.is_awaited(other));
    EXPECT_EQ(seen_by_a_child(), "10");
  }
  EXPECT_FALSE(slots.is_awaited(request));
  EXPECT_EQ(seen_by_a_child(), "00");
}

}  // namespace
}  // namespace kiln::test
