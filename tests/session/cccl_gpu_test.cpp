// The predefined specs on a real device, compared with the standard library. They are skipped without a device. This
// project is developed without one, so these tests have not been run yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <kiln/cccl.hpp>
#include <kiln/stream.hpp>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "session/device_presence.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using cccl::Call;
using cccl::Callable;
using cccl::Spec;

constexpr std::size_t kSizes[] = {0, 1, 127, 128, 1000000};

/// A session on the first device, with a stream. Returns an error if there is no device.
class Gpu {
 public:
  static Result<Gpu> open(const std::string& cache) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache}, {"cccl", cccl_package()}, {"pch.mode", "off"}};
    if (!toolkit_nvrtc().empty()) options.settings["nvrtc"] = toolkit_nvrtc();
    auto session = Session::open(std::move(options));
    if (!session) return session.error();
    if (Status current = session->make_current(Backend::Cuda); !current) return current.error();
    auto stream = session->stream(Backend::Cuda);
    if (!stream) return stream.error();
    return Gpu(std::move(*session), std::move(*stream));
  }

  Session& session() { return session_; }
  StreamRef stream() const { return stream_; }
  Status synchronize() const { return stream_.synchronize(); }
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

 private:
  Gpu(Session session, Stream stream) : session_(std::move(session)), stream_(std::move(stream)) {}
  Session session_;
  Stream stream_;
};

template <class T>
std::vector<T> numbers(std::size_t count, unsigned long maximum, unsigned seed = 1) {
  std::mt19937_64 random(seed + count);
  std::vector<T> all(count);
  for (T& one : all) one = static_cast<T>(random() % (maximum + 1));
  return all;
}

class PredefinedSpec : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!is_device_present("cuda")) GTEST_SKIP() << "there is no NVIDIA device on this machine";
    if (cccl_package().empty()) GTEST_SKIP() << "cuda-cccl is not installed (tools/setup.sh)";
    auto opened = Gpu::open(directory_.path("cache"));
    if (!opened) GTEST_SKIP() << opened.error().message;
    gpu_.emplace(std::move(*opened));
    auto got = cccl::get(gpu_->session(), spec_, kForever);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    callable_ = std::move(*got);
  }
  void TearDown() override {
    callable_.reset();  // before its stream is destroyed
    gpu_.reset();
  }
  void run(Call call) {
    call.stream = gpu_->stream();
    const Status put = (*callable_)(call);
    ASSERT_TRUE(put.has_value()) << put.error().message;
    ASSERT_TRUE(gpu_->synchronize().has_value());
  }

  template <class T>
  void reduce(std::size_t n) {
    // Whole numbers whose sum is exact in any order.
    const std::vector<T> in = numbers<T>(n, 1000);
    const Buffer from = gpu_->memory_of(in);
    const Buffer to = gpu_->memory<T>(1);
    const T init = 5;
    run({.iterators = {from.native(), to.native()}, .items = n, .init = &init});
    EXPECT_EQ(gpu_->read<T>(to, 1)[0], std::accumulate(in.begin(), in.end(), init));
  }

  template <class T>
  void scan(std::size_t n) {
    const std::vector<T> in = numbers<T>(n, 1000);
    const Buffer from = gpu_->memory_of(in);
    const Buffer to = gpu_->memory<T>(n);
    const T init = 7;
    run({.iterators = {from.native(), to.native()}, .items = n, .init = &init});
    std::vector<T> expected(n);
    std::exclusive_scan(in.begin(), in.end(), expected.begin(), init);
    EXPECT_EQ(gpu_->read<T>(to, n), expected);
  }

  void segmented_reduce(std::size_t n) {
    const std::vector<double> in = numbers<double>(n, 1000);
    std::vector<std::int64_t> ends{0};  // starts with an empty segment
    std::mt19937 random(3);
    while (ends.back() < static_cast<std::int64_t>(n)) {
      ends.push_back(std::min<std::int64_t>(static_cast<std::int64_t>(n), ends.back() + random() % 20));
    }
    std::vector<std::int64_t> begins{0};
    begins.insert(begins.end(), ends.begin(), ends.end() - 1);
    const cccl::OperatorKind kind = spec_.operators[0].kind;
    const double infinity = std::numeric_limits<double>::infinity();
    const double init = kind == cccl::OperatorKind::Plus      ? 0
                        : kind == cccl::OperatorKind::Minimum ? infinity
                                                              : -infinity;
    std::vector<double> expected;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      expected.push_back(std::accumulate(in.begin() + begins[i], in.begin() + ends[i], init, [&](double a, double b) {
        if (kind == cccl::OperatorKind::Plus) return a + b;
        return kind == cccl::OperatorKind::Minimum ? std::min(a, b) : std::max(a, b);
      }));
    }
    const Buffer from = gpu_->memory_of(in);
    const Buffer to = gpu_->memory<double>(ends.size());
    const Buffer first = gpu_->memory_of(begins);
    const Buffer last = gpu_->memory_of(ends);
    run({.iterators = {from.native(), to.native(), first.native(), last.native()},
         .items = n,
         .secondary_items = ends.size(),
         .init = &init});
    EXPECT_EQ(gpu_->read<double>(to, ends.size()), expected);
  }

  template <class T>
  void select(std::size_t n) {
    const std::vector<T> in = numbers<T>(n, 3);
    const Buffer from = gpu_->memory_of(in);
    const Buffer selected = gpu_->memory<T>(n);
    const Buffer none = gpu_->memory<T>(1);
    const Buffer rest = gpu_->memory<T>(n);
    const Buffer counts = gpu_->memory_of(std::vector<std::int64_t>{0, 0});
    run({.iterators = {from.native(), selected.native(), none.native(), rest.native(), counts.native()}, .items = n});
    std::vector<T> expected;
    std::copy_if(in.begin(), in.end(), std::back_inserter(expected), [](T x) { return x != 0; });
    const auto count = gpu_->read<std::int64_t>(counts, 2);
    ASSERT_EQ(count, (std::vector<std::int64_t>{static_cast<std::int64_t>(expected.size()), 0}));
    EXPECT_EQ(gpu_->read<T>(selected, expected.size()), expected);
  }

  template <class T>
  void bound(std::size_t n) {
    std::vector<T> data = numbers<T>(n, n + 10);
    std::sort(data.begin(), data.end());
    const std::vector<T> values = numbers<T>(500, n + 12, 9);
    const Buffer in = gpu_->memory_of(data);
    const Buffer sought = gpu_->memory_of(values);
    const Buffer to = gpu_->memory<std::int64_t>(values.size());
    run({.iterators = {in.native(), sought.native(), to.native()}, .items = n, .secondary_items = values.size()});
    std::vector<std::int64_t> expected;
    for (const T value : values) {
      const auto at = spec_.bound == cccl::Bound::Lower ? std::lower_bound(data.begin(), data.end(), value)
                                                        : std::upper_bound(data.begin(), data.end(), value);
      expected.push_back(at - data.begin());
    }
    EXPECT_EQ(gpu_->read<std::int64_t>(to, values.size()), expected);
  }

  template <class K>
  void sort(std::size_t n) {
    std::vector<K> keys = numbers<K>(n, n / 2);
    if constexpr (std::is_signed_v<K>) {
      for (K& key : keys) key -= static_cast<K>(n / 4);
    }
    std::vector<std::int32_t> values(n);
    std::iota(values.begin(), values.end(), 0);
    const Buffer keys_in = gpu_->memory_of(keys);
    const Buffer keys_out = gpu_->memory<K>(n);
    const Buffer values_in = gpu_->memory_of(values);
    const Buffer values_out = gpu_->memory<std::int32_t>(n);
    run({.iterators = {keys_in.native(), keys_out.native(), values_in.native(), values_out.native()}, .items = n});
    // Both sorts are stable: equal keys keep the order of their values, which are ascending here.
    std::vector<std::pair<K, std::int32_t>> expected(n);
    for (std::size_t i = 0; i < n; ++i) expected[i] = {keys[i], values[i]};
    std::sort(expected.begin(), expected.end());
    const std::vector<K> sorted = gpu_->read<K>(keys_out, n);
    const auto moved = gpu_->read<std::int32_t>(values_out, n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(std::pair(sorted[i], moved[i]), expected[i]) << "at " << i;
    EXPECT_EQ(gpu_->read<K>(keys_in, n), keys) << "the input is not overwritten";
  }

  template <class K>
  void unique(std::size_t n) {
    std::vector<K> keys = numbers<K>(n, n / 3);
    std::sort(keys.begin(), keys.end());
    std::vector<std::int32_t> values(n);
    std::iota(values.begin(), values.end(), 0);
    const Buffer keys_in = gpu_->memory_of(keys);
    const Buffer values_in = gpu_->memory_of(values);
    const Buffer keys_out = gpu_->memory<K>(n);
    const Buffer values_out = gpu_->memory<std::int32_t>(n);
    const Buffer count = gpu_->memory_of(std::vector<std::int64_t>{-1});
    run({.iterators = {keys_in.native(), values_in.native(), keys_out.native(), values_out.native(), count.native()},
         .items = n});
    std::vector<K> expected_keys;
    std::vector<std::int32_t> expected_values;
    for (std::size_t i = 0; i < n; ++i) {
      if (i != 0 && keys[i] == keys[i - 1]) continue;
      expected_keys.push_back(keys[i]);
      expected_values.push_back(values[i]);
    }
    ASSERT_EQ(gpu_->read<std::int64_t>(count, 1)[0], static_cast<std::int64_t>(expected_keys.size()));
    EXPECT_EQ(gpu_->read<K>(keys_out, expected_keys.size()), expected_keys);
    EXPECT_EQ(gpu_->read<std::int32_t>(values_out, expected_values.size()), expected_values);
  }

  void check(std::size_t n);

  const Spec spec_ = cccl::find_predefined(GetParam()).value();
  TemporaryDirectory directory_;
  std::optional<Gpu> gpu_;
  std::optional<Callable> callable_;
};

void PredefinedSpec::check(std::size_t n) {
  using cccl::Algorithm;
  const cccl::Scalar key = spec_.iterators[0].value.scalar;
  const bool small = key == cccl::Scalar::I32;
  switch (spec_.algorithm) {
    case Algorithm::Reduce: return small ? reduce<std::int32_t>(n) : reduce<double>(n);
    case Algorithm::Scan: return small ? scan<std::int32_t>(n) : scan<std::int64_t>(n);
    case Algorithm::SegmentedReduce: return segmented_reduce(n);
    case Algorithm::ThreeWayPartition: return small ? select<std::int32_t>(n) : select<std::int64_t>(n);
    case Algorithm::BinarySearch: return small ? bound<std::int32_t>(n) : bound<std::uint64_t>(n);
    case Algorithm::RadixSort:
    case Algorithm::MergeSort: return small ? sort<std::int32_t>(n) : sort<std::uint64_t>(n);
    case Algorithm::UniqueByKey: return small ? unique<std::int32_t>(n) : unique<std::uint64_t>(n);
    default: FAIL() << "no predefined spec has this algorithm";
  }
}

TEST_P(PredefinedSpec, MatchesStandardLibraryAtEverySize) {
  for (const std::size_t n : kSizes) {
    SCOPED_TRACE(std::to_string(n) + " items");
    check(n);
    if (HasFatalFailure()) return;
  }
  // From large to small again: storage that has grown serves smaller calls too.
  check(127);
}

std::vector<std::string> predefined_names() {
  std::vector<std::string> names;
  for (const Spec& spec : cccl::predefined_specs()) names.push_back(spec.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Gpu, PredefinedSpec, testing::ValuesIn(predefined_names()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace kiln::test
