// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "backends/device.hpp"

namespace kiln::test {

/// A device that interprets the toy machine's programs in the calling thread: a launch has completed when it returns,
/// on every stream and on the null stream. Its memory is that of the process. Thread-safe.
class ToyDevice final : public Device {
 public:
  static constexpr std::size_t kMemory = std::size_t{1} << 28;  ///< bytes of the largest allocation

  explicit ToyDevice(Allocator allocator) : allocator_(std::move(allocator)) {}

  std::string kind() const override;
  Result<std::vector<DeviceInfo>> devices() override;
  Result<CurrentContext> current_context() override;
  Status make_current(std::size_t device) override;
  Status ensure_current() override { return {}; }
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

  Result<void*> create_stream() override;
  Status release_stream(void* stream) override;
  Result<bool> capturing(void* /*stream*/) override { return false; }

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_to_host(void* to, void* from, std::size_t bytes, void* stream) override;
  Status synchronize(void* /*stream*/) override { return {}; }

 private:
  const Allocator allocator_;
};

}  // namespace kiln::test
