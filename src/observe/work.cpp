#include <kiln/work.hpp>

#include <utility>

namespace kiln {
namespace {

thread_local WorkScope* innermost = nullptr;

}  // namespace

WorkScope::WorkScope(Work work) : work_(std::move(work)), outer_(std::exchange(innermost, this)) {}

WorkScope::~WorkScope() {
  innermost = outer_;
  if (outer_ != nullptr) outer_->launches_ += launches_;
}

const Work* WorkScope::current() noexcept { return innermost == nullptr ? nullptr : &innermost->work_; }

void WorkScope::count_launch() noexcept {
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
    case Purpose::Unsaid: return "unsaid";
    case Purpose::Input: return "input";
    case Purpose::Size: return "size";
    case Purpose::Materialise: return "materialise";
    case Purpose::Trace: return "trace";
  }
  return "unknown";
}

}  // namespace kiln
