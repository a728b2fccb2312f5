// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/compiler.hpp"
#include "backends/device.hpp"

namespace kiln {

struct SessionOptions;

/// Creates the compilers and the devices of one backend. backends/factory/backend_table.cpp lists the backends.
/// Thread-safe.
class BackendFactory {
 public:
  virtual ~BackendFactory() = default;

  /// Returns the kind of the backend's units and devices: "opencl".
  virtual std::string kind() const = 0;

  /// Returns a compiler. `device` is the architecture of the target if its form is Form::OpenClBinary, otherwise empty.
  /// A session creates one compiler for each device, and a worker creates its own.
  virtual std::unique_ptr<Compiler> make_compiler(const std::string& device) const = 0;
  /// Returns the devices of this machine. Opens no driver yet.
  virtual std::unique_ptr<Device> make_device(const SessionOptions& options, Allocator allocator) const = 0;

  /// Returns true if this machine seems to have a device, or if the program supplied one. Opens no library.
  virtual bool is_device_present(const SessionOptions& options) const = 0;
  /// Returns true if all devices seem to be CPUs. Opens no library.
  virtual bool has_only_cpu_devices(const SessionOptions& /*options*/) const { return false; }

  /// Returns false if the compiler can run in the process of the session: it cannot crash.
  virtual bool compiles_in_worker() const { return true; }
  /// Returns true if the compiler starts programs, which the sandbox of a worker then permits.
  virtual bool runs_programs() const { return false; }
  /// Returns environment variables that a worker needs, in addition to those of the compiler's identity.
  virtual std::vector<std::pair<std::string, std::string>> worker_environment() const { return {}; }
};

}  // namespace kiln
