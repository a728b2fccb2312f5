// SPDX-License-Identifier: Apache-2.0
#include "core/cccl_compute_form.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/cccl_spec.hpp"

namespace kiln {
namespace {

using cccl::Algorithm;
using cccl::Init;

constexpr std::string_view kComputeMagic = "CCCLPYS1";
// The releases of cuda-cccl whose form this file writes. Releases 1.1 write reduce without the kind of its init.
constexpr std::string_view kComputeReleases[] = {"1.2.0", "1.2.1"};

Error not_in_compute(const std::string& what) {
  return make_error(Code::Unsupported, "cannot write the form of cuda.compute: " + what);
}

// A writer of cuda.compute's fields: little-endian numbers, and texts with a length of 64 bits.
class ComputeWriter {
 public:
  explicit ComputeWriter(const cccl::Spec& spec) : spec_(spec) {}

  BinaryWriter& raw() { return out_; }
  ComputeWriter& text(std::string_view value) {
    out_.u64(value.size()).raw(value.data(), value.size());
    return *this;
  }
  ComputeWriter& value(const cccl::Type& type) {
    out_.u64(type.size).u64(type.alignment).u32(static_cast<std::uint32_t>(type.scalar));
    return *this;
  }
  ComputeWriter& op(const cccl::Operator& from) {
    const bool source = cccl::has_code(from) && !from.source.empty();
    out_.u32(static_cast<std::uint32_t>(from.kind));
    text(from.name).text(from.source).text(source ? "cpp_source" : "ltoir");
    out_.u32(static_cast<std::uint32_t>(from.state_alignment)).u64(from.state_size).u32(0);
    return *this;
  }
  ComputeWriter& iterator(const cccl::Iterator& from) {
    const cccl::Operator nothing = cccl::Operator::of(cccl::OperatorKind::Stateless);
    out_.u8(from.custom ? 0 : 1).u32(static_cast<std::uint32_t>(from.custom ? from.state_alignment : 8));
    return value(from.value).op(from.custom ? from.advance : nothing).op(from.custom ? from.dereference : nothing);
  }
  ComputeWriter& iterator(std::size_t index) { return iterator(spec_.iterators.at(index)); }
  ComputeWriter& iterators() {
    for (const cccl::Iterator& each : spec_.iterators) iterator(each);
    return *this;
  }
  ComputeWriter& operators() {
    for (const cccl::Operator& each : spec_.operators) op(each);
    return *this;
  }

 private:
  const cccl::Spec& spec_;
  BinaryWriter out_;
};

// Returns the name of the class in cuda.compute; null if there is none.
const char* compute_class(const cccl::Spec& spec) {
  switch (spec.algorithm) {
    case Algorithm::Scan: return "_Scan";
    case Algorithm::Reduce: return spec.init == Init::Future ? nullptr : "_Reduce";
    case Algorithm::SegmentedReduce: return "_SegmentedReduce";
    case Algorithm::ThreeWayPartition: return "_ThreeWayPartition";
    case Algorithm::BinarySearch: return spec.bound == cccl::Bound::Lower ? "_LowerBound" : "_UpperBound";
    case Algorithm::RadixSort: return "_RadixSort";
    case Algorithm::MergeSort: return "_MergeSort";
    case Algorithm::UniqueByKey: return "_UniqueByKey";
    case Algorithm::UnaryTransform: return "_UnaryTransform";
    case Algorithm::BinaryTransform: return "_BinaryTransform";
    case Algorithm::For: return nullptr;
    case Algorithm::Histogram: return spec.channels == 1 && spec.even ? "_Histogram" : nullptr;
    case Algorithm::SegmentedSort: return "_SegmentedSort";
  }
  return nullptr;
}

// Writes the fields between the class and the builds. Each line is the list of that class.
void write_compute_fields(const cccl::Spec& spec, ComputeWriter& out) {
  switch (spec.algorithm) {
    case Algorithm::Scan:
      out.raw().u8(static_cast<std::uint8_t>(spec.init)).u8(spec.inclusive ? 1 : 0);
      out.iterators().operators();
      if (spec.init == Init::Value) out.value(spec.type);
      if (spec.init == Init::Future) out.iterator(cccl::Iterator::pointer(spec.type));
      return;
    case Algorithm::Reduce:
      out.raw().u8(static_cast<std::uint8_t>(spec.init));
      out.iterators().operators();
      if (spec.init == Init::Value) out.value(spec.type);
      return;
    case Algorithm::SegmentedReduce: out.iterators().value(spec.type).operators(); return;
    case Algorithm::RadixSort:
      out.iterator(0).iterator(0).iterator(1).iterator(1);
      out.op(cccl::Operator::of(cccl::OperatorKind::Stateless));
      return;
    case Algorithm::SegmentedSort: out.iterator(0).iterator(0).iterator(1).iterator(1).iterator(2).iterator(3); return;
    case Algorithm::Histogram:
      out.raw().u64(1);  // rows
      out.iterators().value(cccl::Type::of(cccl::Scalar::I32)).value(spec.type).value(spec.type);
      return;
    default: out.iterators().operators(); return;
  }
}

Status check_builds_alike(const std::vector<CcclEnvelope>& builds) {
  if (builds.empty()) return make_error(Code::InvalidArgument, "there is no CCCL artifact to write");
  for (const CcclEnvelope& build : builds) {
    if (build.spec == builds.front().spec && build.release == builds.front().release) continue;
    return make_error(Code::InvalidArgument,
                      "the CCCL artifacts are of several specs or releases; write one file each");
  }
  return {};
}

}  // namespace

Result<std::string> cuda_compute_form(const std::vector<CcclEnvelope>& builds) {
  if (Status alike = check_builds_alike(builds); !alike) return std::move(alike).error();
  const std::string& release = builds.front().release;
  const auto spec = cccl::Spec::parse(builds.front().spec);
  if (!spec) return spec.error();
  if (Status valid = spec->validate(); !valid) return std::move(valid).error();
  if (std::find(std::begin(kComputeReleases), std::end(kComputeReleases), release) == std::end(kComputeReleases)) {
    return not_in_compute("that of cuda-cccl " + release + " is not known; compile with cuda-cccl 1.2.0 or 1.2.1");
  }
  const char* const name = compute_class(*spec);
  if (name == nullptr) {
    return not_in_compute(std::string("it has no such ") + to_string(spec->algorithm) + "; use the form 'cccl'");
  }
  ComputeWriter out(*spec);
  out.raw().raw(kComputeMagic.data(), kComputeMagic.size());
  out.text(release).text(name);
  write_compute_fields(*spec, out);
  std::map<int, std::string_view> by_capability;
  for (const CcclEnvelope& build : builds) {
    if (by_capability.emplace(build.capability, build.blob).second) continue;
    return make_error(Code::InvalidArgument, "two CCCL artifacts are for sm_" + std::to_string(build.capability));
  }
  out.raw().u32(static_cast<std::uint32_t>(by_capability.size()));
  for (const auto& [capability, blob] : by_capability) {
    out.raw().u32(static_cast<std::uint32_t>(capability));
    out.text(blob);
  }
  return std::move(out.raw()).bytes();
}

}  // namespace kiln
