// SPDX-License-Identifier: Apache-2.0
#include "semiring.hpp"

namespace semiring {

namespace {

constexpr unsigned kBlock = 16;

// Returns a launch whose grid of `kBlock` × `kBlock` blocks covers this many elements in each direction.
kiln::LaunchConfig cover(const kiln::Stream& stream, unsigned width, unsigned height, unsigned depth = 1) {
  const auto blocks = [](unsigned elements) { return elements / kBlock + (elements % kBlock != 0 ? 1 : 0); };
  return {kiln::Grid(blocks(width), blocks(height), depth), kiln::Block(kBlock, kBlock), stream};
}

bool empty(Shape shape) { return shape.rows == 0 || shape.columns == 0; }

}  // namespace

kiln::Result<kiln::Kernel> Semiring::kernel(const std::string& name, kiln::Caller caller) {
  const kiln::Unit* unit = find_unit(backend_, name);
  if (unit == nullptr) return kiln::Error{kiln::Code::InvalidArgument, "semiring has no kernel " + name, {}};
  // The lock protects only the map, so that a thread waiting for one kernel does not block threads that need another.
  std::unique_lock lock(mutex_);
  auto at = handles_.find(name);
  if (at == handles_.end()) at = handles_.emplace(name, session_.handle(*unit)).first;
  const kiln::KernelHandle handle = at->second;
  lock.unlock();
  return handle.get(kiln::kForever, caller);
}

kiln::Status Semiring::gemm(const kiln::Stream& stream, const std::string& over, Shape shape, const kiln::Buffer& a,
                            const kiln::Buffer& b, const kiln::Buffer& c, kiln::Caller caller) {
  const auto found = kernel("gemm_" + over, caller);
  if (!found) return found.error();
  if (empty(shape)) return {};
  return found->launch(cover(stream, shape.columns, shape.rows), shape.rows, shape.columns, shape.inner, a, b, c);
}

kiln::Status Semiring::gemm_argmax(const kiln::Stream& stream, const std::string& over, Shape shape,
                                   const kiln::Buffer& a, const kiln::Buffer& b, const kiln::Buffer& c,
                                   const kiln::Buffer& winner, kiln::Caller caller) {
  const auto found = kernel("argmax_" + over, caller);
  if (!found) return found.error();
  if (empty(shape)) return {};
  return found->launch(cover(stream, shape.columns, shape.rows), shape.rows, shape.columns, shape.inner, a, b, c,
                       winner);
}

kiln::Status Semiring::gemm_batched(const kiln::Stream& stream, const std::string& over, Shape shape,
                                    const Batches& batches, const kiln::Buffer& a, const kiln::Buffer& b,
                                    const kiln::Buffer& c, kiln::Caller caller) {
  const auto found = kernel("batched_" + over, caller);
  if (!found) return found.error();
  if (empty(shape) || batches.count == 0) return {};
  return found->launch(cover(stream, shape.columns, shape.rows, batches.count), shape.rows, shape.columns, shape.inner,
                       batches.count, batches.stride_a, batches.stride_b, batches.stride_c, a, b, c);
}

kiln::Status Semiring::backward_a(const kiln::Stream& stream, const std::string& type, Shape shape,
                                  const kiln::Buffer& gradient_c, const kiln::Buffer& winner,
                                  const kiln::Buffer& gradient_a, kiln::Caller caller) {
  const auto found = kernel("backward_a_" + type, caller);
  if (!found) return found.error();
  if (shape.rows == 0 || shape.inner == 0) return {};
  return found->launch(cover(stream, shape.inner, shape.rows), shape.rows, shape.columns, shape.inner, gradient_c,
                       winner, gradient_a);
}

kiln::Status Semiring::backward_b(const kiln::Stream& stream, const std::string& type, Shape shape,
                                  const kiln::Buffer& gradient_c, const kiln::Buffer& winner,
                                  const kiln::Buffer& gradient_b, kiln::Caller caller) {
  const auto found = kernel("backward_b_" + type, caller);
  if (!found) return found.error();
  if (shape.inner == 0 || shape.columns == 0) return {};
  return found->launch(cover(stream, shape.columns, shape.inner), shape.rows, shape.columns, shape.inner, gradient_c,
                       winner, gradient_b);
}

}  // namespace semiring
