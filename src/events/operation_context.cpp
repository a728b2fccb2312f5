// SPDX-License-Identifier: Apache-2.0
#include <kiln/operation_context.hpp>

#include <atomic>
#include <utility>

namespace kiln {
namespace {

// Thread-local, because the application's own code runs between the scope and the calls of kiln that read it. It is
// state of the caller, like the current span of a tracing library.
thread_local OperationScope* innermost = nullptr;

OperationContext current_or_empty() {
  const OperationContext* current = OperationScope::current();
  return current != nullptr ? *current : OperationContext{};
}

}  // namespace

std::uint64_t OperationContext::next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

OperationContext OperationContext::new_run(std::string operation, std::uint64_t rows, Residency residency) {
  OperationContext work;
  work.operation = std::move(operation);
  work.dispatch = next_id();
  if (const OperationContext* current = OperationScope::current()) work.workflow = current->workflow;
  work.rows = rows;
  work.residency = residency;
  return work;
}

OperationContext OperationContext::in_stage(std::string stage) {
  OperationContext work = current_or_empty();
  work.stage = std::move(stage);
  return work;
}

OperationContext OperationContext::with_purpose(Purpose purpose) {
  OperationContext work = current_or_empty();
  work.purpose = purpose;
  return work;
}

OperationScope::OperationScope(OperationContext work)
    : work_(std::move(work)), outer_(std::exchange(innermost, this)) {}

OperationScope::~OperationScope() {
  if (outer_ != nullptr) outer_->launches_ += launches_;
  OperationScope** link = &innermost;
  while (*link != nullptr && *link != this) link = &(*link)->outer_;
  if (*link == this) *link = outer_;
}

bool OperationScope::is_of_this_thread() const noexcept {
  const OperationScope* scope = innermost;
  while (scope != nullptr && scope != this) scope = scope->outer_;
  return scope == this;
}

const OperationContext* OperationScope::current() noexcept {
  return innermost == nullptr ? nullptr : &innermost->work_;
}

void OperationScope::count_launch() noexcept {
  if (innermost != nullptr) ++innermost->launches_;
}

const char* to_string(Residency residency) {
  switch (residency) {
    case Residency::Unknown: return "unknown";
    case Residency::Host: return "host";
    case Residency::Device: return "device";
  }
  return "unknown";
}

const char* to_string(Purpose purpose) {
  switch (purpose) {
    case Purpose::Unspecified: return "unspecified";
    case Purpose::Input: return "input";
    case Purpose::AllocationSize: return "allocation_size";
    case Purpose::Materialize: return "materialize";
    case Purpose::Trace: return "trace";
  }
  return "unknown";
}

}  // namespace kiln
