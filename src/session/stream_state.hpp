// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kiln/stream.hpp>

#include "backends/device.hpp"

namespace kiln {

/// The state that copies of a stream and its buffers share.
struct detail::StreamState {
  StreamState(std::shared_ptr<Session::State> its_session, Device& its_device, void* its_native)
      : session(std::move(its_session)), device(its_device), native(its_native) {}
  ~StreamState() { (void)device.release_stream(native); }
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  const std::shared_ptr<Session::State> session;  // keeps the device alive
  Device& device;
  void* const native;
};

}  // namespace kiln
