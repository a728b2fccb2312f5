// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>

#include "kernel_list.hpp"

/// Matrix products over semirings: a GPU library with 31 kernels that embeds kiln. It has no startup cost. A program
/// that uses five of the kernels compiles five, once per machine.
namespace semiring {

/// Dimensions of a product: A is rows × inner, B is inner × columns, C is rows × columns. Matrices are dense and
/// row-major.
struct Shape {
  unsigned rows = 0;
  unsigned columns = 0;
  unsigned inner = 0;
};

/// Batched matrices that are stored a stride apart, in elements. A stride of 0 uses one matrix for all batches.
struct Batches {
  unsigned count = 0;
  std::uint64_t stride_a = 0;
  std::uint64_t stride_b = 0;
  std::uint64_t stride_c = 0;
};

/// The library. The constructor compiles and loads nothing. `over` is a semiring and a type, such as "max_plus_f32".
/// Each call enqueues its kernel on the stream and returns. The first call of a kernel waits until the kernel is ready.
/// Thread-safe.
class Semiring {
 public:
  Semiring(kiln::Session session, Backend backend) : session_(std::move(session)), backend_(backend) {}

  /// C = A * B
  kiln::Status gemm(const kiln::Stream& stream, const std::string& over, Shape shape, const kiln::Buffer& a,
                    const kiln::Buffer& b, const kiln::Buffer& c, kiln::Caller caller = kiln::Caller::here());
  /// Like `gemm`, and writes for each element the first k that won it (an int; -1 if all products are the semiring's
  /// zero).
  kiln::Status gemm_argmax(const kiln::Stream& stream, const std::string& over, Shape shape, const kiln::Buffer& a,
                           const kiln::Buffer& b, const kiln::Buffer& c, const kiln::Buffer& winner,
                           kiln::Caller caller = kiln::Caller::here());
  kiln::Status gemm_batched(const kiln::Stream& stream, const std::string& over, Shape shape, const Batches& batches,
                            const kiln::Buffer& a, const kiln::Buffer& b, const kiln::Buffer& c,
                            kiln::Caller caller = kiln::Caller::here());
  /// Computes the gradient of A from that of C through the winners of `gemm_argmax` over (max, +) or (min, +). `type`
  /// is "f32" or "f64".
  kiln::Status backward_a(const kiln::Stream& stream, const std::string& type, Shape shape,
                          const kiln::Buffer& gradient_c, const kiln::Buffer& winner, const kiln::Buffer& gradient_a,
                          kiln::Caller caller = kiln::Caller::here());
  /// Computes the gradient of B in the same way.
  kiln::Status backward_b(const kiln::Stream& stream, const std::string& type, Shape shape,
                          const kiln::Buffer& gradient_c, const kiln::Buffer& winner, const kiln::Buffer& gradient_b,
                          kiln::Caller caller = kiln::Caller::here());

 private:
  kiln::Result<kiln::Kernel> kernel(const std::string& name, kiln::Caller caller);

  kiln::Session session_;
  Backend backend_;
  std::mutex mutex_;
  std::map<std::string, kiln::KernelHandle> handles_;  // handles of the kernels used so far; guarded by mutex_
};

}  // namespace semiring
