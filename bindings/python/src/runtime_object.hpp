// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kiln/runtime.hpp>

#include "bindings.hpp"
#include "enums.hpp"
#include "gil.hpp"
#include "stream_object.hpp"

namespace kiln::python {

using RuntimeObject = DestroyWithoutGil<runtime::Runtime>;

/// An operation whose variants are Python callables. The C++ operation is never destroyed, because a runtime refers to
/// it in decisions that it keeps.
struct OperationObject {
  const runtime::Operation* operation;
};

/// An object that must end on the thread that created it: a run, a stage or a workflow. It ends without holding the
/// GIL, because it emits events. Destroyed on another thread, it leaves the object to its thread. Not thread-safe.
template <class T>
class ThreadBound {
 public:
  explicit ThreadBound(T value) : value_(std::make_unique<T>(std::move(value))) {}
  ThreadBound(ThreadBound&&) noexcept = default;
  ThreadBound& operator=(ThreadBound&&) = delete;
  ~ThreadBound() {
    if (is_of_this_thread()) {
      destroy();
    } else {
      (void)value_.release();
    }
  }

  bool is_of_this_thread() const { return thread_ == std::this_thread::get_id(); }
  bool has_ended() const { return value_ == nullptr; }
  /// Ends the object. A second call has no effect.
  void end() {
    if (value_ != nullptr && !is_of_this_thread()) raise_wrong_thread();
    destroy();
  }
  T& get() const {
    if (value_ == nullptr) raise({Code::InvalidArgument, "the object has ended", {}});
    if (!is_of_this_thread()) raise_wrong_thread();
    return *value_;
  }

 private:
  void destroy() {
    if (value_ == nullptr) return;
    // Other threads can call `end` while this one does not hold the GIL.
    std::unique_ptr<T> ending = std::move(value_);
    const GilRelease released;
    ending.reset();
  }

  std::unique_ptr<T> value_;
  std::thread::id thread_ = std::this_thread::get_id();
};

/// Converts a Python `device` argument: None, or the backend of rows that are on a device.
runtime::DispatchRequest request_of(std::uint64_t rows, const std::string& residency,
                                    const std::optional<std::string>& device);
runtime::Backend backend_of(const std::string& text);

void bind_dispatch(nb::module_& module);

}  // namespace kiln::python
