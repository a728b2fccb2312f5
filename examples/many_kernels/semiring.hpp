#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <kiln/kiln.hpp>

#include "members.hpp"

/// Products of matrices over semirings: a GPU library with 31 kernels, as an author who embeds kiln writes one. It has
/// no start-up to wait for: whoever uses five of the kernels pays for five, once per machine.
namespace semiring {

/// A is rows × inner, B is inner × columns, C is rows × columns; dense, row by row.
struct Shape {
  unsigned rows = 0;
  unsigned columns = 0;
  unsigned inner = 0;
};

/// Pairs of matrices that lie a stride apart, in elements; a stride of zero uses one matrix for all.
struct Batches {
  unsigned count = 0;
  std::uint64_t stride_a = 0;
  std::uint64_t stride_b = 0;
  std::uint64_t stride_c = 0;
};

/// The library. Making one compiles nothing and loads nothing. Any thread. `over` is a semiring and a type, such as
/// "max_plus_f32". Each call puts its kernel on the stream and returns; the first call of a kernel waits for it where
/// it is not ready yet.
class Semiring {
 public:
  Semiring(kiln::Session session, Backend backend) : session_(std::move(session)), backend_(backend) {}

  /// C = A * B
  kiln::Status gemm(const kiln::Stream& stream, const std::string& over, Shape shape, const kiln::Buffer& a,
                    const kiln::Buffer& b, const kiln::Buffer& c, kiln::Caller caller = kiln::Caller::here());
  /// The same, and for each element the first k that won it (an int; -1 where none did). (+, *) selects nothing: there
  /// it is the largest product.
  kiln::Status gemm_argmax(const kiln::Stream& stream, const std::string& over, Shape shape, const kiln::Buffer& a,
                           const kiln::Buffer& b, const kiln::Buffer& c, const kiln::Buffer& winner,
                           kiln::Caller caller = kiln::Caller::here());
  kiln::Status gemm_batched(const kiln::Stream& stream, const std::string& over, Shape shape, const Batches& batches,
                            const kiln::Buffer& a, const kiln::Buffer& b, const kiln::Buffer& c,
                            kiln::Caller caller = kiln::Caller::here());
  /// The gradient of A from that of C, through the winners of gemm_argmax. `product` is the semiring's and the type:
  /// "plus_f32" or "times_f32".
  kiln::Status backward_a(const kiln::Stream& stream, const std::string& product, Shape shape,
                          const kiln::Buffer& gradient_c, const kiln::Buffer& winner, const kiln::Buffer& b,
                          const kiln::Buffer& gradient_a, kiln::Caller caller = kiln::Caller::here());
  /// The gradient of B, likewise.
  kiln::Status backward_b(const kiln::Stream& stream, const std::string& product, Shape shape,
                          const kiln::Buffer& gradient_c, const kiln::Buffer& winner, const kiln::Buffer& a,
                          const kiln::Buffer& gradient_b, kiln::Caller caller = kiln::Caller::here());

 private:
  kiln::Result<kiln::Kernel> kernel(const std::string& name, kiln::Caller caller);

  kiln::Session session_;
  Backend backend_;
  std::mutex mutex_;
  std::map<std::string, kiln::Handle> handles_;  // under mutex_: of the kernels that were used
};

}  // namespace semiring
