// SPDX-License-Identifier: Apache-2.0
#include "engine/task_table.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "base/catch_to_error.hpp"
#include "core/unit_access.hpp"

namespace kiln {
namespace {

// Returns a stop source; if memory is exhausted, one that cannot stop anything, so that the run continues to its end.
std::stop_source stop_source() noexcept {
  try {
    return {};
  } catch (const std::bad_alloc&) {
    return std::stop_source(std::nostopstate);
  }
}

// Returns an urgency; if memory is exhausted, one that cannot be raised, so that the run stays background work.
Urgency urgency(Priority priority) noexcept {
  try {
    return Urgency(priority == Priority::Foreground);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

// Returns the entry of a task that the table contains under this key.
template <class Table, class Key>
typename Table::iterator entry_of(Table& table, const Key& key, const CompileTask& task) {
  auto at = table.equal_range(key).first;
  while (at->second != &task) ++at;
  return at;
}

}  // namespace

CompileTask* TaskTable::find_hashed(const Digest& identity, const Target& target) const {
  const auto [first, last] = hashed_.equal_range(identity);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second->target == target; });
  return found != last ? found->second : nullptr;
}

CompileTask* TaskTable::find(const CompileRequest& request) {
  const Digest* identity = UnitAccess::identity_if_computed(request.unit);
  if (identity != nullptr) {
    if (CompileTask* task = find_hashed(*identity, request.target)) return task;
  }
  if (by_address_.empty()) return nullptr;
  const auto [first, last] = by_address_.equal_range(UnitAccess::fingerprint(request.unit));
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return UnitAccess::address(*entry.second->unit) == UnitAccess::address(request.unit) &&
           entry.second->target == request.target;
  });
  if (found == last) return nullptr;
  return identity != nullptr ? &identify(*found->second) : found->second;
}

CompileTask* TaskTable::find(std::uint64_t number) const {
  const auto found = tasks_.find(number);
  return found != tasks_.end() ? found->second.get() : nullptr;
}

void TaskTable::unhashed_units(const Unit& unit, std::vector<Unit>& units) const {
  if (by_address_.empty()) return;
  const auto [first, last] = by_address_.equal_range(UnitAccess::fingerprint(unit));
  for (auto at = first; at != last; ++at) {
    if (UnitAccess::identity_if_computed(*at->second->unit) == nullptr) units.push_back(*at->second->unit);
  }
}

void TaskTable::find_equal(const Unit& unit, const Target* target, std::vector<CompileTask*>& found) {
  const Digest& identity = UnitAccess::identity(unit);
  if (!by_address_.empty()) {
    std::vector<CompileTask*> alike;
    const auto [first, last] = by_address_.equal_range(UnitAccess::fingerprint(unit));
    for (auto at = first; at != last; ++at) {
      const Digest* known = UnitAccess::identity_if_computed(*at->second->unit);
      const bool is_meant = target == nullptr || at->second->target == *target;
      if (is_meant && known != nullptr && *known == identity) alike.push_back(at->second);
    }
    for (CompileTask* task : alike) {
      if (task->stage != CompileTask::Stage::Running) {
        (void)identify(*task);
      } else {
        found.push_back(task);  // its thread holds a pointer to it and is about to index it
      }
    }
  }
  const auto [first, last] = hashed_.equal_range(identity);
  for (auto at = first; at != last; ++at) {
    if (target == nullptr || at->second->target == *target) found.push_back(at->second);
  }
}

CompileTask& TaskTable::add(const CompileRequest& request, std::chrono::nanoseconds now) {
  const std::uint64_t number = ++numbers_;
  index_.reserve(tasks_.size() + 1);  // so that publishing a result never needs memory
  std::list<CompileTask*> node(1);    // permanent node: moving it between queues needs no memory
  CompileTask& task =
      *tasks_
           .emplace_hint(tasks_.end(), number,
                         std::make_unique<CompileTask>(request, number, UnitAccess::fingerprint(request.unit)))
           ->second;
  task.submitted = now;
  node.front() = &task;
  task.queue_position = node.begin();
  task.list = &cancelled_;
  cancelled_.splice(cancelled_.end(), node);
  try {
    if (const Digest* identity = UnitAccess::identity_if_computed(request.unit)) {
      task.identity = *identity;
      hashed_.emplace(*identity, &task);
    } else {
      by_address_.emplace(task.fingerprint, &task);
    }
  } catch (const std::bad_alloc&) {
    task.is_detached = true;  // it is in neither table
    remove(task);
    throw;
  }
  return task;
}

void TaskTable::unindex(CompileTask& task) {
  if (task.is_detached) return;
  if (task.identity) {
    index_.erase(index_key(*task.identity, task.target));
    hashed_.erase(entry_of(hashed_, *task.identity, task));
  } else {
    by_address_.erase(entry_of(by_address_, task.fingerprint, task));
  }
}

void TaskTable::detach(CompileTask& task) {
  unindex(task);
  task.is_detached = true;
}

void TaskTable::remove(CompileTask& task) {
  unindex(task);
  leave_list(task);
  task.list->erase(task.queue_position);
  tasks_.erase(task.number);
}

void TaskTable::release(CompileTask& task) {
  ++released_;
  if (task.stage == CompileTask::Stage::Running) {
    detach(task);
  } else {
    remove(task);
  }
}

CompileTask& TaskTable::identify(CompileTask& task) {
  if (task.identity || task.is_detached) return task;
  const Digest& identity = UnitAccess::identity(*task.unit);
  if (CompileTask* duplicate = find_hashed(identity, task.target)) {
    if (task.stage == CompileTask::Stage::Queued) {
      set_cancelled(task);
      if (duplicate->stage == CompileTask::Stage::Cancelled ||
          (duplicate->stage == CompileTask::Stage::Ready && duplicate->is_stale)) {
        duplicate->requested_at = task.requested_at;
        if (!duplicate->unit) duplicate->unit = task.unit;
        enqueue(*duplicate, task.priority);
      }
    }
    remove(task);
    return *duplicate;
  }
  const auto entry = entry_of(by_address_, task.fingerprint, task);
  task.identity = identity;
  try {
    hashed_.emplace(identity, &task);
  } catch (const std::bad_alloc&) {
    task.identity.reset();  // it is still indexed by its address
    throw;
  }
  by_address_.erase(entry);
  return task;
}

void TaskTable::leave_list(const CompileTask& task) {
  if (task.list == &queues_[0] && next_ == task.queue_position) ++next_;
}

void TaskTable::move(CompileTask& task, List& to) {
  leave_list(task);
  to.splice(to.end(), *task.list, task.queue_position);
  task.list = &to;
}

void TaskTable::enqueue(CompileTask& task, Priority priority) {
  task.stage = CompileTask::Stage::Queued;
  task.priority = priority;
  move(task, queue(priority));
}

void TaskTable::promote(CompileTask& task) {
  if (task.priority == Priority::Foreground) return;
  enqueue(task, Priority::Foreground);
}

void TaskTable::set_cancelled(CompileTask& task) {
  move(task, cancelled_);
  task.stage = CompileTask::Stage::Cancelled;
}

void TaskTable::set_failed(CompileTask& task) {
  move(task, failed_);
  task.stage = CompileTask::Stage::Failed;
}

CompileTask* TaskTable::take(Priority priority, std::chrono::nanoseconds now, const FleetPlace& place) {
  List& queued = queue(priority);
  if (queued.empty()) return nullptr;
  auto position = queued.begin();
  if (priority == Priority::Background) {
    if (next_ == queued.end()) {
      next_ = std::next(queued.begin(), static_cast<std::ptrdiff_t>(place.first(queued.size())));
    }
    position = next_;
  }
  CompileTask* const task = *position;
  move(*task, running_);
  task->stage = CompileTask::Stage::Running;
  task->stop = stop_source();
  task->urgent = urgency(priority);
  task->is_cancelling = false;
  task->began = now;
  return task;
}

void TaskTable::end_run(CompileTask& task, std::chrono::nanoseconds now) {
  task.ended = now;
  last_end_ = now;
  task.stop = std::stop_source(std::nostopstate);
}

void TaskTable::set_result(CompileTask& task, ResolveResultPtr result) noexcept {
  task.stage = CompileTask::Stage::Ready;
  task.result = std::move(result);
  move(task, ready_[task.result->origin == Origin::Compiled ? 1 : 0]);
  task.is_stale = false;
  if (!task.identity || task.is_detached) return;
  index_.put(index_key(*task.identity, task.target), *task.result);
  if (!task.result->is_slim || !task.unit) return;
  ignore_failures([&] {
    task.label = task.unit->label();
    task.kind = task.unit->kind();
    task.unit.reset();
  });
}

void TaskTable::hide_result(const CompileTask& task) noexcept {
  if (task.identity && !task.is_detached) index_.erase(index_key(*task.identity, task.target));
}

std::size_t TaskTable::queued_similar(const CompileTask& task) const {
  constexpr std::size_t kMaxQueuedSimilar = 16;
  constexpr std::size_t kMaxExamined = 256;
  std::size_t count = 0;
  std::size_t examined = 0;
  for (const auto& queue : queues_) {
    for (const CompileTask* other : queue) {
      if (count == kMaxQueuedSimilar || ++examined > kMaxExamined) return count;
      if (other->unit_kind() == task.unit_kind() && other->target == task.target) ++count;
    }
  }
  return count;
}

}  // namespace kiln
