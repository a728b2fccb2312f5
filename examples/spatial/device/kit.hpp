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

#include "spatial/device/primitives.hpp"

namespace spatial {

/// A stream of a device, the kernels of this library on it by their names, and the primitives. Columns on a device
/// share the kit that they were made with, and so does what is computed of them: everything of a kit is in the order of
/// its stream. Used by one thread at a time.
class DeviceKit {
 public:
  using MakePrimitives = std::function<std::unique_ptr<Primitives>(DeviceKit&)>;

  /// CUDA: in the thread's current context; where it has none, in the primary one of the first device, which then is
  /// current. The primitives are those of the backend, or the caller's own.
  static kiln::Result<std::shared_ptr<DeviceKit>> open(const kiln::Session& session, kiln::runtime::Backend backend,
                                                       const MakePrimitives& primitives = {});

  kiln::runtime::Backend backend() const { return backend_; }
  const kiln::Stream& stream() const { return stream_; }
  Primitives& primitives() { return *primitives_; }

  /// At least a byte, so that columns without rows need no care.
  kiln::Result<kiln::Buffer> allocate(std::size_t bytes) const;
  kiln::Status allocate(std::size_t bytes, std::optional<kiln::Buffer>& to) const;
  kiln::Result<kiln::Buffer> copy_of(const void* from, std::size_t bytes) const;

  /// As many work groups as have an item each, or as many as there should be at most: kernels go over the items in
  /// steps. None of nothing. Groups are as large as the device advises.
  template <class... Args>
  kiln::Status launch(const char* kernel, std::size_t items, const Args&... args) {
    using kiln::argument_of;
    const kiln::Argument arguments[] = {argument_of(args)..., {}};
    return launch_items(kernel, items, arguments, sizeof...(args));
  }
  /// So many work groups.
  template <class... Args>
  kiln::Status launch_groups(const char* kernel, std::size_t groups, const Args&... args) {
    using kiln::argument_of;
    const kiln::Argument arguments[] = {argument_of(args)..., {}};
    return launch_with(kernel, groups, arguments, sizeof...(args));
  }

 private:
  struct Ready {
    kiln::Handle handle;
    unsigned block;
  };

  DeviceKit(kiln::Session session, kiln::runtime::Backend backend, kiln::Stream stream);
  kiln::Result<const Ready*> ready(const char* kernel);
  kiln::Status launch_items(const char* kernel, std::size_t items, const kiln::Argument* arguments, std::size_t count);
  kiln::Status launch_with(const char* kernel, std::size_t groups, const kiln::Argument* arguments, std::size_t count);

  kiln::Session session_;
  kiln::runtime::Backend backend_;
  kiln::Stream stream_;
  std::map<std::string, Ready, std::less<>> kernels_;  // those that were used
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace spatial
