#include <kiln/operation_context.hpp>

#include <utility>

namespace kiln {
namespace {

// Thread-local, because the application's own code runs between the scope and the calls of kiln that read it. It is
// state of the caller, like the current span of a tracing library.
thread_local OperationScope* innermost = nullptr;

}  // namespace

OperationScope::OperationScope(OperationContext work)
    : work_(std::move(work)), outer_(std::exchange(innermost, this)) {}

OperationScope::~OperationScope() {
  innermost = outer_;
  if (outer_ != nullptr) outer_->launches_ += launches_;
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
