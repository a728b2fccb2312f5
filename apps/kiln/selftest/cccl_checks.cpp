// SPDX-License-Identifier: Apache-2.0
// The check of `kiln selftest` for CCCL: the predefined algorithms, compared with the standard library.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

#include <kiln/cccl.hpp>

#include "apps/kiln/selftest/selftest_check.hpp"
#include "base/format.hpp"

namespace kiln::cli::selftest {
namespace {

using cccl::Call;

template <class T>
std::vector<T> random_numbers(std::size_t count, unsigned long maximum, unsigned seed = 1) {
  std::mt19937_64 random(seed + count);
  std::vector<T> all(count);
  for (T& one : all) one = static_cast<T>(random() % (maximum + 1));
  return all;
}

/// One algorithm on the device and its comparison for a number of items. Not thread-safe.
class CcclCheck {
 public:
  CcclCheck(const Subject& subject, const Bench& bench, const cccl::Spec& spec, const cccl::Callable& callable)
      : subject_(subject), stream_(bench.stream), spec_(spec), callable_(callable) {}

  void check(std::size_t n) const;

 private:
  /// Allocates memory for this many elements, at least one: a null iterator is rejected.
  template <class T>
  Buffer memory(std::size_t count) const {
    return stream_.allocate(std::max<std::size_t>(count, 1) * sizeof(T)).value();
  }
  template <class T>
  Buffer memory_of(const std::vector<T>& values) const {
    Buffer made = memory<T>(values.size());
    if (!values.empty()) stream_.upload(made, values.data(), values.size() * sizeof(T)).value();
    return made;
  }
  template <class T>
  std::vector<T> read(const Buffer& from, std::size_t count) const {
    std::vector<T> values(count);
    if (count != 0) stream_.download(values.data(), from, count * sizeof(T)).value();
    return values;
  }
  void run(Call call) const {
    call.stream = stream_;
    callable_(call).value();
    stream_.synchronize().value();
  }
  template <class T>
  void expect(const std::vector<T>& found, const std::vector<T>& expected) const {
    expect_equal(subject_, found, expected, spec_.name);
  }

  template <class T>
  void reduce(std::size_t n) const;
  template <class T>
  void scan(std::size_t n) const;
  void segmented_reduce(std::size_t n) const;
  template <class T>
  void select(std::size_t n) const;
  template <class T>
  void bound(std::size_t n) const;
  template <class K>
  void sort(std::size_t n) const;
  template <class K>
  void unique(std::size_t n) const;

  const Subject& subject_;
  const Stream& stream_;
  const cccl::Spec& spec_;
  const cccl::Callable& callable_;
};

template <class T>
void CcclCheck::reduce(std::size_t n) const {
  const std::vector<T> in = random_numbers<T>(n, 1000);  // whole numbers, whose sum is exact in any order
  const Buffer from = memory_of(in);
  const Buffer to = memory<T>(1);
  const T init = 5;
  run({.iterators = {from.native(), to.native()}, .items = n, .init = &init});
  expect(read<T>(to, 1), {std::accumulate(in.begin(), in.end(), init)});
}

template <class T>
void CcclCheck::scan(std::size_t n) const {
  const std::vector<T> in = random_numbers<T>(n, 1000);
  const Buffer from = memory_of(in);
  const Buffer to = memory<T>(n);
  const T init = 7;
  run({.iterators = {from.native(), to.native()}, .items = n, .init = &init});
  std::vector<T> expected(n);
  std::exclusive_scan(in.begin(), in.end(), expected.begin(), init);
  expect(read<T>(to, n), expected);
}

void CcclCheck::segmented_reduce(std::size_t n) const {
  const std::vector<double> in = random_numbers<double>(n, 1000);
  std::vector<std::int64_t> ends{0};  // starts with an empty segment
  std::mt19937 random(3);
  while (ends.back() < static_cast<std::int64_t>(n)) {
    ends.push_back(std::min<std::int64_t>(static_cast<std::int64_t>(n), ends.back() + random() % 20));
  }
  std::vector<std::int64_t> begins{0};
  begins.insert(begins.end(), ends.begin(), ends.end() - 1);
  const cccl::OperatorKind kind = spec_.operators[0].kind;
  const double infinity = std::numeric_limits<double>::infinity();
  const double init = kind == cccl::OperatorKind::Plus ? 0 : kind == cccl::OperatorKind::Minimum ? infinity : -infinity;
  std::vector<double> expected;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    expected.push_back(std::accumulate(in.begin() + begins[i], in.begin() + ends[i], init, [&](double a, double b) {
      if (kind == cccl::OperatorKind::Plus) return a + b;
      return kind == cccl::OperatorKind::Minimum ? std::min(a, b) : std::max(a, b);
    }));
  }
  const Buffer from = memory_of(in);
  const Buffer to = memory<double>(ends.size());
  const Buffer first = memory_of(begins);
  const Buffer last = memory_of(ends);
  run({.iterators = {from.native(), to.native(), first.native(), last.native()},
       .items = n,
       .secondary_items = ends.size(),
       .init = &init});
  expect(read<double>(to, ends.size()), expected);
}

template <class T>
void CcclCheck::select(std::size_t n) const {
  const std::vector<T> in = random_numbers<T>(n, 3);
  const Buffer from = memory_of(in);
  const Buffer selected = memory<T>(n);
  const Buffer none = memory<T>(1);
  const Buffer rest = memory<T>(n);
  const Buffer counts = memory_of(std::vector<std::int64_t>{0, 0});
  run({.iterators = {from.native(), selected.native(), none.native(), rest.native(), counts.native()}, .items = n});
  std::vector<T> expected;
  std::copy_if(in.begin(), in.end(), std::back_inserter(expected), [](T x) { return x != 0; });
  expect(read<std::int64_t>(counts, 2), {static_cast<std::int64_t>(expected.size()), 0});
  expect(read<T>(selected, expected.size()), expected);
}

template <class T>
void CcclCheck::bound(std::size_t n) const {
  std::vector<T> data = random_numbers<T>(n, n + 10);
  std::sort(data.begin(), data.end());
  const std::vector<T> values = random_numbers<T>(500, n + 12, 9);
  const Buffer in = memory_of(data);
  const Buffer sought = memory_of(values);
  const Buffer to = memory<std::int64_t>(values.size());
  run({.iterators = {in.native(), sought.native(), to.native()}, .items = n, .secondary_items = values.size()});
  std::vector<std::int64_t> expected;
  for (const T value : values) {
    const auto at = spec_.bound == cccl::Bound::Lower ? std::lower_bound(data.begin(), data.end(), value)
                                                      : std::upper_bound(data.begin(), data.end(), value);
    expected.push_back(at - data.begin());
  }
  expect(read<std::int64_t>(to, values.size()), expected);
}

template <class K>
void CcclCheck::sort(std::size_t n) const {
  std::vector<K> keys = random_numbers<K>(n, n / 2);
  if constexpr (std::is_signed_v<K>) {
    for (K& key : keys) key -= static_cast<K>(n / 4);
  }
  std::vector<std::int32_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  const Buffer keys_in = memory_of(keys);
  const Buffer keys_out = memory<K>(n);
  const Buffer values_in = memory_of(values);
  const Buffer values_out = memory<std::int32_t>(n);
  run({.iterators = {keys_in.native(), keys_out.native(), values_in.native(), values_out.native()}, .items = n});
  // Both sorts are stable: equal keys keep the order of their values, which are ascending here.
  std::vector<std::pair<K, std::int32_t>> pairs(n);
  for (std::size_t i = 0; i < n; ++i) pairs[i] = {keys[i], values[i]};
  std::sort(pairs.begin(), pairs.end());
  std::vector<K> sorted_keys;
  std::vector<std::int32_t> sorted_values;
  for (const auto& [key, value] : pairs) {
    sorted_keys.push_back(key);
    sorted_values.push_back(value);
  }
  expect(read<K>(keys_out, n), sorted_keys);
  expect(read<std::int32_t>(values_out, n), sorted_values);
  expect(read<K>(keys_in, n), keys);  // the input is not overwritten
}

template <class K>
void CcclCheck::unique(std::size_t n) const {
  std::vector<K> keys = random_numbers<K>(n, n / 3);
  std::sort(keys.begin(), keys.end());
  std::vector<std::int32_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  const Buffer keys_in = memory_of(keys);
  const Buffer values_in = memory_of(values);
  const Buffer keys_out = memory<K>(n);
  const Buffer values_out = memory<std::int32_t>(n);
  const Buffer count = memory_of(std::vector<std::int64_t>{-1});
  run({.iterators = {keys_in.native(), values_in.native(), keys_out.native(), values_out.native(), count.native()},
       .items = n});
  std::vector<K> expected_keys;
  std::vector<std::int32_t> expected_values;
  for (std::size_t i = 0; i < n; ++i) {
    if (i != 0 && keys[i] == keys[i - 1]) continue;
    expected_keys.push_back(keys[i]);
    expected_values.push_back(values[i]);
  }
  expect(read<std::int64_t>(count, 1), {static_cast<std::int64_t>(expected_keys.size())});
  expect(read<K>(keys_out, expected_keys.size()), expected_keys);
  expect(read<std::int32_t>(values_out, expected_values.size()), expected_values);
}

void CcclCheck::check(std::size_t n) const {
  using cccl::Algorithm;
  const bool small = spec_.iterators[0].value.scalar == cccl::Scalar::I32;
  switch (spec_.algorithm) {
    case Algorithm::Reduce: return small ? reduce<std::int32_t>(n) : reduce<double>(n);
    case Algorithm::Scan: return small ? scan<std::int32_t>(n) : scan<std::int64_t>(n);
    case Algorithm::SegmentedReduce: return segmented_reduce(n);
    case Algorithm::ThreeWayPartition: return small ? select<std::int32_t>(n) : select<std::int64_t>(n);
    case Algorithm::BinarySearch: return small ? bound<std::int32_t>(n) : bound<std::uint64_t>(n);
    case Algorithm::RadixSort:
    case Algorithm::MergeSort: return small ? sort<std::int32_t>(n) : sort<std::uint64_t>(n);
    case Algorithm::UniqueByKey: return small ? unique<std::int32_t>(n) : unique<std::uint64_t>(n);
    default: fail("no comparison for the algorithm of " + spec_.name);
  }
}

}  // namespace

Result<Shown> check_cccl_calls(const Subject& subject) {
  if (!subject.driver.empty())
    return Shown::skip("NVIDIA's library runs only on NVIDIA's driver; 'driver' replaces it");
  Bench bench = Bench::open(subject);
  std::vector<cccl::Spec> specs(cccl::predefined_specs().begin(), cccl::predefined_specs().end());
  if (subject.quick) specs.erase(specs.begin(), specs.end() - 3);  // those that take least to compile
  Units units;
  for (const cccl::Spec& spec : specs) units.push_back(spec.unit());
  bench.session.request(units);  // all at once; the next lines wait for one after the other
  for (const cccl::Spec& spec : specs) {
    const Result<cccl::Callable> callable = cccl::get(bench.session, spec, kForever);
    if (!callable && callable.error().code == Code::Unavailable) return Shown::skip(callable.error().message);
    if (!callable) return callable.error();
    const CcclCheck check(subject, bench, spec, *callable);
    // From large to small again at the end: storage that has grown serves smaller calls too.
    for (const std::size_t n :
         {std::size_t{0}, std::size_t{1}, std::size_t{127}, std::size_t{128}, sample_size(subject), std::size_t{127}}) {
      check.check(n);
    }
  }
  const Artifact artifact = bench.session.artifact(units.front(), bench.device.target).value();
  return Shown{format_count(specs.size(), "algorithm", "algorithms") + " of cuda-cccl " +
               cccl::artifact_info(artifact).value().release + " at 5 sizes"};
}

}  // namespace kiln::cli::selftest
