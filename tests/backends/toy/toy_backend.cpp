// SPDX-License-Identifier: Apache-2.0
#include "backends/toy/toy_backend.hpp"

#include <utility>

#include "backends/toy/toy_compiler.hpp"
#include "backends/toy/toy_device.hpp"

namespace kiln::test {
namespace {

class ToyBackend final : public BackendFactory {
 public:
  std::string kind() const override { return kToyKind; }
  std::unique_ptr<Compiler> make_compiler(const std::string& /*device*/) const override {
    return std::make_unique<ToyCompiler>();
  }
  std::unique_ptr<Device> make_device(const SessionOptions& /*options*/, Allocator allocator) const override {
    return std::make_unique<ToyDevice>(std::move(allocator));
  }
  bool is_device_present(const SessionOptions& /*options*/) const override { return true; }
  // kiln-worker does not contain the toy compiler.
  bool compiles_in_worker() const override { return false; }
};

}  // namespace

const BackendFactory& toy_backend() {
  static const ToyBackend backend;
  return backend;
}

}  // namespace kiln::test
