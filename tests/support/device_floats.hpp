#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "device/device.hpp"

namespace kiln::test {

/// Memory of a device with floats in it, for the time of a test. A mistake ends the test by an exception.
class DeviceFloats {
 public:
  DeviceFloats(Device& device, void* stream, const std::vector<float>& values)
      : device_(device), stream_(stream), size_(values.size()) {
    memory_ = device.allocate(bytes(), stream).value();
    device.copy_in(memory_, values.data(), bytes(), stream).value();
  }
  ~DeviceFloats() { EXPECT_TRUE(device_.release(memory_, bytes(), stream_).ok()); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  std::size_t bytes() const { return size_ * sizeof(float); }
  Argument argument() const { return {&memory_, sizeof memory_}; }
  std::vector<float> values() const {
    std::vector<float> out(size_);
    device_.copy_out(out.data(), memory_, bytes(), stream_).value();
    return out;
  }

 private:
  Device& device_;
  void* stream_;
  std::size_t size_;
  void* memory_ = nullptr;
};

}  // namespace kiln::test
