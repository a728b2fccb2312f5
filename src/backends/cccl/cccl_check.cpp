// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_check.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "backends/cccl/cccl_module.hpp"
#include "backends/cuda/cubin.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

using cccl::Algorithm;

/// The check of one algorithm: its spec, and the parts of the demangled name of one kernel, in order.
struct Expectation {
  Algorithm algorithm;
  const char* spec;
  std::vector<std::string_view> parts;
};

// The two predicates have states of different sizes, which the names of the kernels contain.
constexpr const char* kPartition = R"({"algorithm":"three_way_partition","iterators":["i16","f64","f32","u16","i64"],
"operators":[{"name":"kiln_first","state_size":4,"state_alignment":4,"source":
"extern \"C\" __device__ void kiln_first(void* s, void* x, void* r) { *(bool*)r = *(short*)x > *(int*)s; }"},
{"name":"kiln_second","state_size":12,"state_alignment":4,"source":
"extern \"C\" __device__ void kiln_second(void* s, void* x, void* r) { *(bool*)r = *(short*)x < *(int*)s; }"}]})";
constexpr const char* kUnary = R"({"algorithm":"unary_transform","iterators":["i16","f64"],
"operators":[{"name":"kiln_first","state_size":12,"state_alignment":4,"source":
"extern \"C\" __device__ void kiln_first(void* s, void* x, void* r) { *(double*)r = *(short*)x + *(int*)s; }"}]})";
constexpr const char* kBinary = R"({"algorithm":"binary_transform","iterators":["i16","f32","f64"],
"operators":[{"name":"kiln_first","state_size":12,"state_alignment":4,"source":
"extern \"C\" __device__ void kiln_first(void* s, void* x, void* y, void* r) { *(double*)r = *(short*)x + *(float*)y; }"}]})";
constexpr const char* kFor = R"({"algorithm":"for","iterators":["i16"],
"operators":[{"name":"kiln_first","state_size":12,"state_alignment":4,"source":
"extern \"C\" __device__ void kiln_first(void* s, void* x) { *(short*)x = *(int*)s; }"}]})";

// The names are the same for CCCL 3.5 and 3.6 except for the version in their namespace.
const std::vector<Expectation>& expectations() {
  static const std::vector<Expectation> kAll = {
      {Algorithm::Scan,
       R"({"algorithm":"scan","iterators":["i16","f64"],"operators":["maximum"],"type":"f32","inclusive":true,"init":"none"})",
       {"DeviceScanKernel<", "short*, double*", "maximum<float>", "NullType", ", float, true"}},
      {Algorithm::Reduce,
       R"({"algorithm":"reduce","iterators":["i16","f64"],"operators":["maximum"],"type":"f32","determinism":"run_to_run"})",
       {"DeviceReduceKernel<", "maximum<float>", "determinism", ")1", "short*, float*"}},
      {Algorithm::SegmentedReduce,
       R"({"algorithm":"segmented_reduce","iterators":["i16","f64","u32","i64"],"operators":["maximum"],"type":"f32"})",
       {"DeviceSegmentedReduceKernel<", "short*, float*, unsigned int*, long long*", "maximum<float>"}},
      {Algorithm::ThreeWayPartition,
       kPartition,
       {"DeviceThreeWayPartitionKernel<", "short*, double*, float*, unsigned short*, long long*", "kiln_first", " 4, 4",
        "kiln_second", " 12, 4"}},
      {Algorithm::BinarySearch,
       R"({"algorithm":"binary_search","iterators":["i16","f32","u32"],"operators":["greater"],"bound":"upper"})",
       {"transform_kernel<", "binary_search", " 16, 8", "<unsigned int>", "<float>", "unsigned int*, float*"}},
      {Algorithm::RadixSort,
       R"({"algorithm":"radix_sort","iterators":["i16","f64"],"order":"descending"})",
       {"DeviceRadixSortOnesweepKernel<", "SortOrder)1, short, double"}},
      {Algorithm::MergeSort,
       R"({"algorithm":"merge_sort","iterators":["i16","f64","i16","f64"],"operators":["greater"]})",
       {"DeviceMergeSortBlockSortKernel<", "short*, double*, short*, double*", "greater<short>"}},
      {Algorithm::UniqueByKey,
       R"({"algorithm":"unique_by_key","iterators":["i16","f64","i16","f64","u32"],"operators":["equal_to"]})",
       {"DeviceUniqueByKeySweepKernel<", "short*, double*, short*, double*, unsigned int*", "equal_to<short>"}},
      {Algorithm::UnaryTransform,
       kUnary,
       {"transform_kernel<", "kiln_first", " 12, 4", "<double>", "<short>", "double*, short*"}},
      {Algorithm::BinaryTransform,
       kBinary,
       {"transform_kernel<", "kiln_first", " 12, 4", "<double>", "<short>", "<float>", "double*, short*, float*"}},
      {Algorithm::For, kFor, {"for_each", "kernel<", "unsigned long long"}},
      {Algorithm::Histogram,
       R"({"algorithm":"histogram","iterators":["u8","u32"],"type":"f32","channels":4,"active_channels":3,"levels":17,"even":true})",
       {"DeviceHistogramSweep", "unsigned char, unsigned int, 4, 3, true", "unsigned char*, unsigned int", "float"}},
      {Algorithm::SegmentedSort,
       R"({"algorithm":"segmented_sort","iterators":["i16","f64","u32","i64"],"order":"descending"})",
       {"DeviceSegmentedSortKernelSmall<", "SortOrder)1", "short, double, unsigned int*, long long*"}},
  };
  return kAll;
}

const Expectation& expectation_of(Algorithm algorithm) {
  const std::vector<Expectation>& all = expectations();
  return *std::find_if(all.begin(), all.end(), [&](const Expectation& one) { return one.algorithm == algorithm; });
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

// Searches the template arguments only: the parameters of the kernel repeat their types in another order.
bool contains_in_order(std::string_view name, const std::vector<std::string_view>& parts) {
  name = name.substr(0, name.find(">("));
  std::size_t at = 0;
  for (const std::string_view part : parts) {
    at = name.find(part, at);
    if (at == std::string_view::npos) return false;
    at += part.size();
  }
  return true;
}

Error failed(std::string reason) { return make_error(Code::CompileFailed, std::move(reason)); }

}  // namespace

cccl::Spec cccl_check_spec(Algorithm algorithm) { return cccl::Spec::parse(expectation_of(algorithm).spec).value(); }

Status check_cccl_kernels(Algorithm algorithm, const std::vector<std::string>& symbols) {
  // CUB's namespace contains the architecture that NVRTC compiled for, such as _SM_800.
  const std::string architecture = "_SM_" + std::to_string(kCcclCheckCapability) + "0";
  const std::vector<std::string_view>& parts = expectation_of(algorithm).parts;
  std::string seen;
  for (const std::string& symbol : symbols) {
    const std::string name = demangled(symbol);
    if (name.find(architecture) != std::string::npos && contains_in_order(name, parts)) return {};
    if (seen.size() < 1000) seen += (seen.empty() ? "" : "; ") + name.substr(0, 400);
  }
  std::string expected;
  for (const std::string_view part : parts) expected += std::string(expected.empty() ? "" : " … ") += part;
  return failed(std::string("the kernels of ") + to_string(algorithm) + " are not those that its parameters lead to (" +
                expected + "), but " + (seen.empty() ? "none" : seen));
}

Status check_cccl_build(const std::shared_ptr<const CcclLibrary>& library, Algorithm algorithm,
                        const CcclBuild& build) {
  if (build.has_overflowed()) return failed("the build result is larger than that of any known release");
  if (build.capability() != kCcclCheckCapability) {
    return failed("the result is for capability " + std::to_string(build.capability()) + ", not for " +
                  std::to_string(kCcclCheckCapability));
  }
  const auto contents = read_cubin(build.payload());
  if (!contents) return failed("the result has no machine code: " + contents.error().message);
  if (Status named = check_cccl_kernels(algorithm, contents->kernels); !named) return named;
  const auto blob = build.serialize();
  if (!blob) return blob.error();
  const auto again = CcclLibrary::deserialize(library, algorithm, *blob);
  if (!again) return failed("its serialized form cannot be read: " + again.error().message);
  if (again->capability() != build.capability() || again->payload() != build.payload() || again->has_overflowed()) {
    return failed("the deserialized result differs from the compiled one");
  }
  const auto second = again->serialize();
  if (!second) return second.error();
  if (*second != *blob) return failed("the deserialized result serializes to other bytes");
  if (Status named = check_cccl_names(*blob, build.payload(), contents->kernels); !named) {
    return failed(named.error().message);
  }
  return {};
}

}  // namespace kiln
