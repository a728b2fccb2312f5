// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/device_context.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "spatial/device/cuda_primitives.hpp"
#include "spatial/device/opencl_primitives.hpp"
#include "spatial/device/units.hpp"

namespace spatial {

using kiln::runtime::Backend;

namespace {

// Returns the maximum number of work groups. The limit applies to PoCL, see
// examples/spatial/kernels/spatial/columns.clh; a GPU has none.
std::size_t max_groups(Backend backend, unsigned block) {
  constexpr std::size_t kMaxItems = 65'535;
  return backend == Backend::OpenCl ? std::max<std::size_t>(kMaxItems / block, 1)
                                    : std::size_t{std::numeric_limits<std::int32_t>::max()};
}

}  // namespace

DeviceContext::DeviceContext(kiln::Session session, Backend backend, kiln::Stream stream)
    : session_(std::move(session)), backend_(backend), stream_(std::move(stream)) {}

kiln::Result<std::shared_ptr<DeviceContext>> DeviceContext::open(const kiln::Session& session, Backend backend,
                                                                 const MakePrimitives& primitives) {
  if (!kiln::runtime::on_device(backend)) {
    return kiln::Error{
        kiln::Code::Unsupported,
        std::string("the spatial library has no device variant for ") + kiln::runtime::to_string(backend),
        {}};
  }
  kiln::Session own = session;
  auto stream = own.stream(kiln::runtime::device_backend(backend));
  if (!stream) return std::move(stream).error();
  std::shared_ptr<DeviceContext> kit(new DeviceContext(std::move(own), backend, *std::move(stream)));
  if (primitives) {
    kit->primitives_ = primitives(*kit);
  } else if (backend == Backend::Cuda) {
    kit->primitives_ = std::make_unique<CudaPrimitives>(*kit, CudaPrimitives::of_session(session));
  } else {
    kit->primitives_ = std::make_unique<OpenClPrimitives>(*kit);
  }
  return kit;
}

kiln::Result<kiln::Buffer> DeviceContext::allocate(std::size_t bytes) const {
  return stream_.allocate(std::max<std::size_t>(bytes, 1));
}

kiln::Status DeviceContext::allocate(std::size_t bytes, std::optional<kiln::Buffer>& to) const {
  auto made = allocate(bytes);
  if (!made) return std::move(made).error();
  to.emplace(*std::move(made));
  return {};
}

kiln::Result<kiln::Buffer> DeviceContext::copy_of(const void* from, std::size_t bytes) const {
  return bytes == 0 ? allocate(0) : stream_.copy_of(from, bytes);
}

kiln::Result<const DeviceContext::Ready*> DeviceContext::ready(const char* kernel) {
  const auto known = kernels_.find(kernel);
  if (known != kernels_.end()) return &known->second;
  const kiln::Unit* unit = find_unit(backend_, kernel);
  if (unit == nullptr) {
    return kiln::Error{kiln::Code::Internal, std::string("the spatial library has no kernel ") + kernel, {}};
  }
  kiln::KernelHandle handle = session_.handle(*unit, kernel);
  const auto got = handle.get();
  if (!got) return got.error();
  const auto occupancy = got->occupancy();
  if (!occupancy) return occupancy.error();
  return &kernels_.emplace(kernel, Ready{std::move(handle), std::max(occupancy->block_size, 1u)}).first->second;
}

kiln::Status DeviceContext::launch_items(const char* kernel, std::size_t items, const kiln::Argument* arguments,
                                         std::size_t count) {
  if (items == 0) return {};
  const auto found = ready(kernel);
  if (!found) return found.error();
  const unsigned block = (*found)->block;
  return launch_with(kernel, std::min((items - 1) / block + 1, max_groups(backend_, block)), arguments, count);
}

kiln::Status DeviceContext::launch_with(const char* kernel, std::size_t groups, const kiln::Argument* arguments,
                                        std::size_t count) {
  const auto found = ready(kernel);
  if (!found) return found.error();
  const auto got = (*found)->handle.get();
  if (!got) return got.error();
  if (groups > std::numeric_limits<std::int32_t>::max()) {
    return kiln::Error{kiln::Code::InvalidArgument, std::string("too much for one launch of ") + kernel, {}};
  }
  const kiln::LaunchConfig config(kiln::Grid(static_cast<unsigned>(groups)), kiln::Block((*found)->block), stream_);
  return got->launch_raw(config, arguments, count);
}

}  // namespace spatial
