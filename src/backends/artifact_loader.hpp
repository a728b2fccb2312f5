// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "backends/device.hpp"

namespace kiln {

/// Loads artifacts of a form that the driver cannot load directly. Thread-safe.
class ArtifactLoader {
 public:
  virtual ~ArtifactLoader() = default;
  virtual Form form() const = 0;
  /// Loads an artifact. Returns Code::LoadRejected if the bytes do not fit this machine; the caller then uses another
  /// artifact or compiles again. The artifact's bytes have not been checked.
  virtual Result<std::shared_ptr<Module>> load(const Artifact& artifact) = 0;
};

}  // namespace kiln
