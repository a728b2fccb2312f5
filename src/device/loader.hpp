#pragma once

#include <memory>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "device/device.hpp"

namespace kiln {

/// Makes something callable of artifacts of one form that the driver does not take as they are. Any thread.
class Loader {
 public:
  virtual ~Loader() = default;
  virtual Form form() const = 0;
  /// Code::LoadRefused where the bytes are not good for this machine: whoever asked looks elsewhere or compiles again.
  /// The artifact's bytes have not been checked.
  virtual Result<std::shared_ptr<Module>> load(const Artifact& artifact) = 0;
};

}  // namespace kiln
