// SPDX-License-Identifier: Apache-2.0
// The calls of CCCL functions, as recorded by a library that replaces NVIDIA's.
#include <gtest/gtest.h>

#include <kiln/cccl.hpp>
#include <vector>

#include "support/fakes/cccl_recorder.hpp"

namespace kiln::test {
namespace {

using cccl::Algorithm;
using cccl::Call;
using cccl::Iterator;
using cccl::Operator;
using cccl::OperatorKind;
using cccl::Scalar;
using cccl::Spec;
using cccl::Type;

const void* address(std::uintptr_t number) {
  return reinterpret_cast<const void*>(number);  // NOLINT(performance-no-int-to-ptr): it is never dereferenced
}

/// Returns a spec whose iterators have values of 1, 2, 4, 8, 1, … bytes, which distinguishes them.
Spec spec_of(Algorithm algorithm, std::size_t iterators, std::size_t operators) {
  constexpr Scalar kScalars[] = {Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64};
  Spec spec;
  spec.algorithm = algorithm;
  for (std::size_t i = 0; i < iterators; ++i) spec.iterators.push_back(Iterator::pointer(Type::of(kScalars[i % 4])));
  spec.operators.assign(operators, Operator::of(OperatorKind::Less));
  spec.type = Type::of(Scalar::I32);
  return spec;
}

class CcclRun : public testing::Test {
 protected:
  /// Runs it with iterators at 101, 102, … and returns the record of the call.
  const CcclRecord& run(const Spec& spec, std::size_t iterators) {
    call_.iterators.clear();
    for (std::size_t i = 0; i < iterators; ++i) call_.iterators.push_back(address(101 + i));
    EXPECT_TRUE(spec.validate().has_value()) << spec.validate().error().message;
    const CcclBuild build = recorder_.build(spec.algorithm);
    std::size_t bytes = 4096;
    void* const storage = const_cast<void*>(address(4096));
    const Status status = build.run(spec, call_, storage, bytes);
    EXPECT_TRUE(status.has_value()) << status.error().message;
    const CcclRecord& record = recorder_.record();
    EXPECT_TRUE(record.whole) << "the build result has another size";
    EXPECT_EQ(record.stream, call_.stream->native());
    if (takes_temporary(spec.algorithm)) {
      EXPECT_EQ(record.storage, storage);
      EXPECT_EQ(record.storage_bytes, 4096U);
    }
    return record;
  }
  static std::vector<std::uintptr_t> states(const CcclRecord& record) {
    std::vector<std::uintptr_t> all;
    for (std::size_t i = 0; i < record.iterator_count; ++i) {
      all.push_back(reinterpret_cast<std::uintptr_t>(record.iterators[i]));
    }
    return all;
  }
  static std::vector<std::size_t> sizes(const CcclRecord& record) {
    return {record.value_sizes, record.value_sizes + record.iterator_count};
  }
  static std::vector<unsigned long> numbers(const CcclRecord& record) {
    return {record.numbers, record.numbers + record.number_count};
  }

  using Places = std::vector<std::uintptr_t>;
  using Sizes = std::vector<std::size_t>;
  using Numbers = std::vector<unsigned long>;
  CcclRecorder recorder_;
  const int init_ = 42;
  Call call_{StreamRef::from_native(const_cast<void*>(address(77))), {}, 1000, 30, &init_};
};

TEST_F(CcclRun, ScansTakeInitialValue) {
  Spec spec = spec_of(Algorithm::Scan, 2, 1);
  const CcclRecord& record = run(spec, 2);
  EXPECT_STREQ(record.function, "exclusive_scan");
  EXPECT_EQ(states(record), (Places{101, 102}));
  EXPECT_EQ(numbers(record), (Numbers{1000}));
  EXPECT_EQ(record.op_kinds[0], static_cast<int>(OperatorKind::Less));
  EXPECT_EQ(record.values[0], 42U);
  spec.inclusive = true;
  EXPECT_STREQ(run(spec, 2).function, "inclusive_scan");
  spec.init = cccl::Init::None;
  EXPECT_STREQ(run(spec, 2).function, "inclusive_scan_no_init");
  spec.init = cccl::Init::Future;
  spec.inclusive = false;
  call_.init = address(200);
  EXPECT_STREQ(run(spec, 2).function, "exclusive_scan_future_value");
  EXPECT_EQ(states(recorder_.record()), (Places{101, 102, 200}));
}

TEST_F(CcclRun, NondeterministicReductionUsesOtherFunction) {
  Spec spec = spec_of(Algorithm::Reduce, 2, 1);
  const CcclRecord& record = run(spec, 2);
  EXPECT_STREQ(record.function, "reduce");
  EXPECT_EQ(states(record), (Places{101, 102}));
  EXPECT_EQ(record.values[0], 42U);
  spec.determinism = cccl::Determinism::NotGuaranteed;
  EXPECT_STREQ(run(spec, 2).function, "reduce_nondeterministic");
}

TEST_F(CcclRun, SegmentsAndSearchesTakeSecondSize) {
  const CcclRecord& reduced = run(spec_of(Algorithm::SegmentedReduce, 4, 1), 4);
  EXPECT_EQ(states(reduced), (Places{101, 102, 103, 104}));
  EXPECT_EQ(numbers(reduced), (Numbers{30, 0}));
  const CcclRecord& found = run(spec_of(Algorithm::BinarySearch, 3, 1), 3);
  EXPECT_STREQ(found.function, "binary_search");
  EXPECT_EQ(states(found), (Places{101, 102, 103}));
  EXPECT_EQ(numbers(found), (Numbers{1000, 30}));
}

TEST_F(CcclRun, SortsTakeKeysInKeysOutValuesInValuesOut) {
  Spec radix = spec_of(Algorithm::RadixSort, 2, 0);
  const CcclRecord& record = run(radix, 4);
  EXPECT_EQ(states(record), (Places{101, 102, 103, 104}));
  EXPECT_EQ(sizes(record), (Sizes{1, 1, 2, 2}));
  EXPECT_EQ(numbers(record), (Numbers{1000, 0, 8, 0})) << "all bits of the key, no overwriting";
  call_.begin_bit = 2;
  call_.end_bit = 5;
  EXPECT_EQ(numbers(run(radix, 4)), (Numbers{1000, 2, 5, 0}));
  // The library's merge sort has them in another order, and so has its spec.
  const CcclRecord& merged = run(spec_of(Algorithm::MergeSort, 4, 1), 4);
  EXPECT_EQ(states(merged), (Places{101, 103, 102, 104}));
  EXPECT_EQ(sizes(merged), (Sizes{1, 2, 4, 8}));
  const CcclRecord& segmented = run(spec_of(Algorithm::SegmentedSort, 4, 0), 6);
  EXPECT_EQ(states(segmented), (Places{101, 102, 103, 104, 105, 106}));
  EXPECT_EQ(sizes(segmented), (Sizes{1, 1, 2, 2, 4, 8}));
  EXPECT_EQ(numbers(segmented), (Numbers{1000, 30, 0}));
}

TEST_F(CcclRun, SelectionsTakeCountsLast) {
  const CcclRecord& parted = run(spec_of(Algorithm::ThreeWayPartition, 5, 2), 5);
  EXPECT_EQ(states(parted), (Places{101, 102, 103, 104, 105}));
  EXPECT_EQ(parted.op_count, 2U);
  EXPECT_EQ(numbers(parted), (Numbers{1000}));
  const CcclRecord& unique = run(spec_of(Algorithm::UniqueByKey, 5, 1), 5);
  EXPECT_EQ(states(unique), (Places{101, 102, 103, 104, 105}));
  EXPECT_EQ(numbers(unique), (Numbers{1000}));
}

TEST_F(CcclRun, TransformsTakeNoStorage) {
  EXPECT_EQ(states(run(spec_of(Algorithm::UnaryTransform, 2, 1), 2)), (Places{101, 102}));
  EXPECT_EQ(states(run(spec_of(Algorithm::BinaryTransform, 3, 1), 3)), (Places{101, 102, 103}));
  EXPECT_EQ(states(run(spec_of(Algorithm::For, 1, 1), 1)), (Places{101}));
  EXPECT_EQ(numbers(recorder_.record()), (Numbers{1000}));
}

TEST_F(CcclRun, HistogramTakesLevelsByValue) {
  Spec spec = spec_of(Algorithm::Histogram, 2, 0);
  spec.levels = 257;
  const int lower = 3;
  const int upper = 9;
  call_.lower_level = &lower;
  call_.upper_level = &upper;
  const CcclRecord& record = run(spec, 2);
  EXPECT_EQ(record.values[0], 257U);
  EXPECT_EQ(record.values[1], 3U);
  EXPECT_EQ(record.values[2], 9U);
  EXPECT_EQ(numbers(record), (Numbers{1000, 30, 1000}));
  call_.row_stride = 1024;
  EXPECT_EQ(numbers(run(spec, 2)), (Numbers{1000, 30, 1024}));
  call_.row_stride = 0;
  spec.channels = 4;
  EXPECT_EQ(numbers(run(spec, 2)), (Numbers{1000, 30, 4000}));
}

TEST_F(CcclRun, UnsupportedSpecIsNotCalled) {
  Spec spec = spec_of(Algorithm::Reduce, 2, 1);
  std::size_t bytes = 0;
  const auto code_of = [&](const Spec& what) {
    return recorder_.build(what.algorithm).run(what, call_, nullptr, bytes).error().code;
  };
  spec.init = cccl::Init::Future;
  EXPECT_EQ(code_of(spec), Code::Unsupported);
  spec.init = cccl::Init::None;
  spec.determinism = cccl::Determinism::NotGuaranteed;
  EXPECT_EQ(code_of(spec), Code::Unsupported);
  Spec scan = spec_of(Algorithm::Scan, 2, 1);
  scan.init = cccl::Init::None;  // of an exclusive scan
  EXPECT_EQ(code_of(scan), Code::Unsupported);
  Spec histogram = spec_of(Algorithm::Histogram, 2, 0);
  histogram.even = false;
  EXPECT_EQ(code_of(histogram), Code::Unsupported);
  EXPECT_EQ(recorder_.runs() + recorder_.questions(), 0);
}

TEST_F(CcclRun, StatesArePassedToStatefulOperators) {
  Spec spec = spec_of(Algorithm::ThreeWayPartition, 5, 2);
  spec.operators[1] = Operator{OperatorKind::Stateful, "f", "extern \"C\" void f();", 8, 8, false};
  int state = 0;
  call_.operator_state = {&state};
  EXPECT_EQ(run(spec, 5).op_states[1], &state);
}

TEST_F(CcclRun, IncompleteCallIsRejected) {
  const Spec spec = spec_of(Algorithm::Reduce, 2, 1);
  const CcclBuild build = recorder_.build(spec.algorithm);
  std::size_t bytes = 4096;
  void* const storage = const_cast<void*>(address(4096));
  const auto rejection = [&](const Call& call) {
    const Status status = build.run(spec, call, storage, bytes);
    EXPECT_EQ(status.error().code, Code::InvalidArgument);
    return status.error().message;
  };
  call_.iterators = {address(101)};
  EXPECT_NE(rejection(call_).find("2 iterators, not 1"), std::string::npos);
  call_.iterators = {address(101), nullptr};
  EXPECT_NE(rejection(call_).find("iterator 1 is null"), std::string::npos);
  call_.iterators = {address(101), address(102)};
  call_.init = nullptr;
  EXPECT_NE(rejection(call_).find("`init` is null"), std::string::npos);
  EXPECT_EQ(recorder_.runs(), 0);
}

TEST_F(CcclRun, QueryNeedsNoCallArguments) {
  const Spec spec = spec_of(Algorithm::RadixSort, 2, 0);
  std::size_t bytes = 0;
  Call nothing;
  nothing.items = 5000;
  nothing.end_bit = 1;
  ASSERT_TRUE(recorder_.build(spec.algorithm).run(spec, nothing, nullptr, bytes).has_value());
  EXPECT_EQ(bytes, 256U * 6);
  EXPECT_EQ(recorder_.record().numbers[2], 8U) << "the query is for all bits, which need the most storage";
}

TEST_F(CcclRun, LibraryErrorsKeepTheirNumber) {
  const Spec spec = spec_of(Algorithm::For, 1, 1);
  const CcclBuild build = recorder_.build(spec.algorithm);
  std::size_t bytes = 0;
  call_.iterators = {address(101)};
  const auto code_of = [&](int outcome) {
    recorder_.set_outcome(outcome);
    const Status status = build.run(spec, call_, nullptr, bytes);
    EXPECT_NE(status.error().message.find(std::to_string(outcome)), std::string::npos);
    return status.error().code;
  };
  EXPECT_EQ(code_of(209), Code::LoadRejected);
  EXPECT_EQ(code_of(100), Code::Unavailable);
  EXPECT_EQ(code_of(700), Code::Internal);
}

}  // namespace
}  // namespace kiln::test
