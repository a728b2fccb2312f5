// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <kiln/kiln.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/stream.hpp>

#include "spatial/device/primitives.hpp"

namespace spatial {

/// A stream of a device, the kernels of this library by name, and the primitives. Columns on a device share the kit
/// they were created with, and so do their results: all work of a kit runs in the order of its stream. Not thread-safe.
class DeviceContext {
 public:
  using MakePrimitives = std::function<std::unique_ptr<Primitives>(DeviceContext&)>;

  /// Opens a kit. CUDA uses the thread's current context; if there is none, it makes the primary context of the first
  /// device current. `primitives` replaces the primitives of the backend.
  static kiln::Result<std::shared_ptr<DeviceContext>> open(const kiln::Session& session, kiln::runtime::Backend backend,
                                                           const MakePrimitives& primitives = {});

  kiln::runtime::Backend backend() const { return backend_; }
  const kiln::Stream& stream() const { return stream_; }
  Primitives& primitives() { return *primitives_; }

  /// Allocates at least one byte, so that columns without rows need no special case.
  kiln::Result<kiln::Buffer> allocate(std::size_t bytes) const;
  kiln::Status allocate(std::size_t bytes, std::optional<kiln::Buffer>& to) const;
  kiln::Result<kiln::Buffer> copy_of(const void* from, std::size_t bytes) const;

  /// Launches one work item per item, up to a maximum number of work groups; the kernels loop over the remaining items.
  /// Launches nothing for zero items. The device chooses the size of the groups.
  template <class... Args>
  kiln::Status launch(const char* kernel, std::size_t items, const Args&... args) {
    using kiln::argument_of;
    const kiln::Argument arguments[] = {argument_of(args)..., {}};
    return launch_items(kernel, items, arguments, sizeof...(args));
  }
  /// Launches exactly `groups` work groups.
  template <class... Args>
  kiln::Status launch_groups(const char* kernel, std::size_t groups, const Args&... args) {
    using kiln::argument_of;
    const kiln::Argument arguments[] = {argument_of(args)..., {}};
    return launch_with(kernel, groups, arguments, sizeof...(args));
  }

 private:
  struct Ready {
    kiln::KernelHandle handle;
    unsigned block;
  };

  DeviceContext(kiln::Session session, kiln::runtime::Backend backend, kiln::Stream stream);
  kiln::Result<const Ready*> ready(const char* kernel);
  kiln::Status launch_items(const char* kernel, std::size_t items, const kiln::Argument* arguments, std::size_t count);
  kiln::Status launch_with(const char* kernel, std::size_t groups, const kiln::Argument* arguments, std::size_t count);

  kiln::Session session_;
  kiln::runtime::Backend backend_;
  kiln::Stream stream_;
  std::map<std::string, Ready, std::less<>> kernels_;  // the kernels used so far
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace spatial
