#pragma once

#include <memory>

#include <kiln/session.hpp>

#include "device/device.hpp"

namespace kiln {

/// What copies of a stream and the buffers on it share.
struct detail::StreamState {
  StreamState(std::shared_ptr<Session::State> its_session, Device& its_device, void* its_native)
      : session(std::move(its_session)), device(its_device), native(its_native) {}
  ~StreamState() { (void)device.release_stream(native); }
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  const std::shared_ptr<Session::State> session;  // keeps the device
  Device& device;
  void* const native;
};

}  // namespace kiln
