#include "check.hpp"

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
  T worst;
  T (*sum)(T, T);
  T (*product)(T, T);
  bool (*wins)(T, T);
};

template <class T>
Algebra<T> algebra(const std::string& name) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const auto plus = [](T a, T b) { return a + b; };
  const auto times = [](T a, T b) { return a * b; };
  const auto largest = [](T a, T b) { return a > b ? a : b; };
  const auto smallest = [](T a, T b) { return a < b ? a : b; };
  const auto more = [](T a, T b) { return a > b; };
  const auto less = [](T a, T b) { return a < b; };
  if (name == "plus_times") return {0, -infinity, plus, times, more};
  if (name == "max_plus") return {-infinity, -infinity, largest, plus, more};
  if (name == "min_plus") return {infinity, infinity, smallest, plus, less};
  if (name == "max_times") return {-infinity, -infinity, largest, times, more};
  if (name == "min_times") return {infinity, infinity, smallest, times, less};
  return {-infinity, -infinity, largest, smallest, more};
}

// Returns multiples of 1/8 between -8 and 8. All results computed from them are exact in a float, so results are
// compared for equality.
template <class T>
std::vector<T> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<T> values(count);
  for (T& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<T>(static_cast<int>(seed >> 25) - 64) / 8;
  }
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
      T best = semiring.worst;
      int won = -1;
      for (std::size_t k = 0; k < kShape.inner; ++k) {
        const T product = semiring.product(a[row * kShape.inner + k], b[k * kShape.columns + column]);
        sum = semiring.sum(sum, product);
        if (semiring.wins(product, best)) {
          best = product;
          won = static_cast<int>(k);
        }
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
  const Algebra<T> semiring = algebra<T>(over.substr(0, over.rfind('_')));
  std::vector<T> a = numbers<T>(kShape.rows * kShape.inner, 1);
  const std::vector<T> b = numbers<T>(kShape.inner * kShape.columns, 2);
  // The first row has no path to any column: its sums are the semiring's zero, and no k wins them.
  if (over.find("_plus_") != std::string::npos) std::fill_n(a.begin(), kShape.inner, semiring.zero);
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
  const Algebra<float> semiring = algebra<float>(over.substr(0, over.rfind('_')));
  const Batches batches{kBatches, kShape.rows * kShape.inner, 0, kShape.rows * kShape.columns};
  const std::vector<float> a = numbers<float>(kBatches * batches.stride_a, 3);
  const std::vector<float> b = numbers<float>(kShape.inner * kShape.columns, 4);
  std::vector<float> expected;
  for (unsigned batch = 0; batch < kBatches; ++batch) {
    const std::vector<float> c = multiply(semiring, a.data() + batch * batches.stride_a, b.data()).c;
    expected.insert(expected.end(), c.begin(), c.end());
  }
  const kiln::Buffer device_a = upload(stream, a);
  const kiln::Buffer device_b = upload(stream, b);
  Output<float> c(stream, expected.size());
  library.gemm_batched(stream, over, kShape, batches, device_a, device_b, c.buffer()).value();
  return c.compare(expected);
}

Outcome check_backward(Semiring& library, const kiln::Stream& stream, bool to_a, const std::string& product) {
  const bool times = product == "times_f32";
  const std::vector<float> a = numbers<float>(kShape.rows * kShape.inner, 5);
  const std::vector<float> b = numbers<float>(kShape.inner * kShape.columns, 6);
  const std::vector<float> gradient = numbers<float>(kShape.rows * kShape.columns, 7);
  const std::vector<int> winner = multiply(algebra<float>(times ? "max_times" : "max_plus"), a.data(), b.data()).winner;
  std::vector<float> expected(to_a ? a.size() : b.size(), 0.0F);
  for (std::size_t row = 0; row < kShape.rows; ++row) {
    for (std::size_t column = 0; column < kShape.columns; ++column) {
      const std::size_t at = row * kShape.columns + column;
      const std::size_t at_a = row * kShape.inner + static_cast<std::size_t>(winner[at]);
      const std::size_t at_b = static_cast<std::size_t>(winner[at]) * kShape.columns + column;
      const float factor = !times ? 1.0F : to_a ? b[at_b] : a[at_a];
      expected[to_a ? at_a : at_b] += gradient[at] * factor;
    }
  }
  const kiln::Buffer device_gradient = upload(stream, gradient);
  const kiln::Buffer device_winner = upload(stream, winner);
  const kiln::Buffer other = upload(stream, to_a ? b : a);
  Output<float> output(stream, expected.size());
  const auto backward = to_a ? &Semiring::backward_a : &Semiring::backward_b;
  (library.*backward)(stream, product, kShape, device_gradient, device_winner, other, output.buffer(),
                      kiln::Caller::here())
      .value();
  return output.compare(expected);
}

}  // namespace

Outcome check(Semiring& library, const kiln::Stream& stream, const std::string& kernel) {
  const std::string family = kernel.substr(0, kernel.find('_'));
  const std::string over = kernel.substr(kernel.find('_') + 1);
  if (family == "batched") return check_batched(library, stream, over);
  if (family == "backward") return check_backward(library, stream, over[0] == 'a', over.substr(2));
  return over.substr(over.rfind('_')) == "_f64" ? check_product<double>(library, stream, family, over)
                                                : check_product<float>(library, stream, family, over);
}

}  // namespace semiring
