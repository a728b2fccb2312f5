// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace semiring {

namespace {

// Not a multiple of the block size, so that the last blocks extend past the edge of every matrix.
constexpr Shape kShape{37, 29, 19};
constexpr unsigned kBatches = 3;

// A semiring in plain C++. examples/many_kernels/kernels/semiring.cl describes its operations.
template <class T>
struct Algebra {
  T zero;
  T (*product)(T, T);
  bool (*wins)(T, T);
};

template <class T>
Algebra<T> algebra(const std::string& name) {
  using Limits = std::numeric_limits<T>;
  constexpr T highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const auto more = [](T a, T b) { return a > b; };
  const auto less = [](T a, T b) { return a < b; };
  if (name == "max_plus")
    return {-highest, [](T a, T b) { return std::min(a, b) == -highest ? -highest : a + b; }, more};
  if (name == "min_plus") return {highest, [](T a, T b) { return std::max(a, b) == highest ? highest : a + b; }, less};
  return {0, [](T a, T b) { return a * b; }, more};
}

// Returns multiples of 1/8 between -8 and 8, of which integers are the whole part. All results computed from them are
// exact in a float, so results are compared for equality.
template <class T>
std::vector<T> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<T> values(count);
  for (T& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<T>(static_cast<int>(seed >> 25) - 64) / 8;
  }
  return values;
}

// Returns the elements of a matrix for the semiring. Those of (max, *) are not negative.
template <class T>
std::vector<T> operand(const std::string& semiring, std::size_t count, std::uint32_t seed) {
  std::vector<T> values = numbers<T>(count, seed);
  if (semiring != "max_times") return values;
  for (T& value : values) value = std::abs(value);
  return values;
}

template <class T>
struct Product {
  std::vector<T> c;
  std::vector<int> winner;
};

template <class T>
Product<T> multiply(const Algebra<T>& semiring, const T* a, const T* b) {
  Product<T> result;
  for (std::size_t row = 0; row < kShape.rows; ++row) {
    for (std::size_t column = 0; column < kShape.columns; ++column) {
      T sum = semiring.zero;
      int won = -1;
      for (std::size_t k = 0; k < kShape.inner; ++k) {
        const T product = semiring.product(a[row * kShape.inner + k], b[k * kShape.columns + column]);
        if (!semiring.wins(product, sum)) continue;
        sum = product;
        won = static_cast<int>(k);
      }
      result.c.push_back(sum);
      result.winner.push_back(won);
    }
  }
  return result;
}

template <class T>
kiln::Buffer upload(const kiln::Stream& stream, const std::vector<T>& values) {
  kiln::Buffer buffer = stream.allocate(values.size() * sizeof(T)).value();
  stream.upload(buffer, values.data(), buffer.size()).value();
  return buffer;
}

// An output buffer that is filled beforehand with a byte pattern that no result contains.
template <class T>
class Output {
 public:
  Output(const kiln::Stream& stream, std::size_t count)
      : stream_(stream), values_(marked(count)), buffer_(upload(stream, values_)) {}

  const kiln::Buffer& buffer() const { return buffer_; }
  Outcome compare(const std::vector<T>& expected) {
    const kiln::OperationScope result(kiln::OperationContext::with_purpose(kiln::Purpose::Materialize));
    stream_.download(values_.data(), buffer_, buffer_.size()).value();
    if (values_ == expected) return Outcome::Right;
    return values_ == marked(values_.size()) ? Outcome::Untouched : Outcome::Wrong;
  }

 private:
  static std::vector<T> marked(std::size_t count) {
    std::vector<T> values(count);
    std::memset(values.data(), 0xa5, count * sizeof(T));
    return values;
  }

  kiln::Stream stream_;
  std::vector<T> values_;
  kiln::Buffer buffer_;
};

template <class T>
Outcome check_product(Semiring& library, const kiln::Stream& stream, const std::string& family,
                      const std::string& over) {
  const std::string name = over.substr(0, over.rfind('_'));
  const Algebra<T> semiring = algebra<T>(name);
  std::vector<T> a = operand<T>(name, kShape.rows * kShape.inner, 1);
  const std::vector<T> b = operand<T>(name, kShape.inner * kShape.columns, 2);
  // The first row has no path to any column: its sums are the semiring's zero, and no k wins them.
  std::fill_n(a.begin(), kShape.inner, semiring.zero);
  const Product<T> expected = multiply(semiring, a.data(), b.data());

  const kiln::Buffer device_a = upload(stream, a);
  const kiln::Buffer device_b = upload(stream, b);
  Output<T> c(stream, expected.c.size());
  if (family == "gemm") {
    library.gemm(stream, over, kShape, device_a, device_b, c.buffer()).value();
    return c.compare(expected.c);
  }
  Output<int> winner(stream, expected.winner.size());
  library.gemm_argmax(stream, over, kShape, device_a, device_b, c.buffer(), winner.buffer()).value();
  const Outcome sums = c.compare(expected.c);
  const Outcome winners = winner.compare(expected.winner);
  return sums == winners ? sums : Outcome::Wrong;
}

// Checks several A matrices with one shared B.
Outcome check_batched(Semiring& library, const kiln::Stream& stream, const std::string& over) {
  const std::string name = over.substr(0, over.rfind('_'));
  const Batches batches{kBatches, kShape.rows * kShape.inner, 0, kShape.rows * kShape.columns};
  const std::vector<float> a = operand<float>(name, kBatches * batches.stride_a, 3);
  const std::vector<float> b = operand<float>(name, kShape.inner * kShape.columns, 4);
  std::vector<float> expected;
  for (unsigned batch = 0; batch < kBatches; ++batch) {
    const std::vector<float> c = multiply(algebra<float>(name), a.data() + batch * batches.stride_a, b.data()).c;
    expected.insert(expected.end(), c.begin(), c.end());
  }
  const kiln::Buffer device_a = upload(stream, a);
  const kiln::Buffer device_b = upload(stream, b);
  Output<float> c(stream, expected.size());
  library.gemm_batched(stream, over, kShape, batches, device_a, device_b, c.buffer()).value();
  return c.compare(expected);
}

template <class T>
Outcome check_backward(Semiring& library, const kiln::Stream& stream, bool to_a, const std::string& type) {
  const std::vector<T> a = numbers<T>(kShape.rows * kShape.inner, 5);
  const std::vector<T> b = numbers<T>(kShape.inner * kShape.columns, 6);
  const std::vector<T> gradient = numbers<T>(kShape.rows * kShape.columns, 7);
  const std::vector<int> winner = multiply(algebra<T>("max_plus"), a.data(), b.data()).winner;
  std::vector<T> expected(to_a ? a.size() : b.size());
  for (std::size_t row = 0; row < kShape.rows; ++row) {
    for (std::size_t column = 0; column < kShape.columns; ++column) {
      const std::size_t at = row * kShape.columns + column;
      const auto k = static_cast<std::size_t>(winner[at]);
      expected[to_a ? row * kShape.inner + k : k * kShape.columns + column] += gradient[at];
    }
  }
  const kiln::Buffer device_gradient = upload(stream, gradient);
  const kiln::Buffer device_winner = upload(stream, winner);
  Output<T> output(stream, expected.size());
  const auto backward = to_a ? &Semiring::backward_a : &Semiring::backward_b;
  (library.*backward)(stream, type, kShape, device_gradient, device_winner, output.buffer(), kiln::Caller::here())
      .value();
  return output.compare(expected);
}

}  // namespace

Outcome check(Semiring& library, const kiln::Stream& stream, const std::string& kernel) {
  // One run of an operation, so that `kiln audit` knows where the work ends: its result is read, and nothing follows.
  const kiln::OperationScope operation(kiln::OperationContext::new_run("semiring." + kernel));
  const std::string family = kernel.substr(0, kernel.find('_'));
  const std::string over = kernel.substr(kernel.find('_') + 1);
  const std::string type = kernel.substr(kernel.rfind('_') + 1);
  if (family == "batched") return check_batched(library, stream, over);
  if (family == "backward") {
    const auto check_type = type == "f64" ? check_backward<double> : check_backward<float>;
    return check_type(library, stream, over[0] == 'a', type);
  }
  const auto check_type = type == "f64"   ? check_product<double>
                          : type == "i32" ? check_product<std::int32_t>
                          : type == "i64" ? check_product<std::int64_t>
                                          : check_product<float>;
  return check_type(library, stream, family, over);
}

}  // namespace semiring
