// SPDX-License-Identifier: Apache-2.0
#include "core/cccl_blob.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <kiln/cccl.hpp>

#include "base/codec.hpp"
#include "core/cccl_compute_form.hpp"
#include "core/cccl_envelope.hpp"

namespace kiln::test {
namespace {

const std::vector<std::string> kKernels = {"_Z4scanv", "_Z4initv"};
const std::string kCode = "\177ELF and the rest of a cubin";

void add_section(BinaryWriter& out, std::string_view bytes) { out.u64(bytes.size()).raw(bytes.data(), bytes.size()); }

/// Returns a blob as the library writes it. `sections` follow the cubin.
std::string blob_of(const std::vector<std::string>& sections, std::uint32_t capability = 80,
                    std::string_view fields = "fields") {
  BinaryWriter out;
  out.raw("CCCLSER1", 8).u32(2).u32(1).u32(capability).raw(fields.data(), fields.size());
  add_section(out, kCode);
  for (const std::string& section : sections) add_section(out, section);
  return std::move(out).bytes();
}

bool corrupt(std::string_view blob) {
  const auto read = read_cccl_blob(blob, kKernels);
  return !read && read.error().code == Code::Corrupt;
}

Artifact artifact_of(const cccl::Spec& spec, const std::string& blob, int capability,
                     const std::string& release = "1.2.1") {
  Artifact artifact;
  artifact.bytes = Bytes::of(encode(CcclEnvelope{spec.text(), release, "0123", capability, kKernels, blob}));
  artifact.target.form = Form::Cccl;
  return artifact;
}

TEST(CcclBlob, ReadsCapabilityPolicyAndNamesInTheLibrarysOrder) {
  const std::string blob = blob_of({"policy of 18 bytes", "_Z4initv", "_Z4scanv"});
  const auto read = read_cccl_blob(blob, kKernels);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->capability, 80);
  EXPECT_EQ(read->code, kCode);
  EXPECT_EQ(read->policy_bytes, 18U);
  EXPECT_EQ(read->kernels, (std::vector<std::string_view>{"_Z4initv", "_Z4scanv"}));
}

TEST(CcclBlob, AddsUpSeveralPoliciesAndAcceptsNone) {
  EXPECT_EQ(read_cccl_blob(blob_of({"twelve bytes", "twelve bytes", "_Z4scanv"}), kKernels)->policy_bytes, 24U);
  EXPECT_EQ(read_cccl_blob(blob_of({"_Z4scanv"}), kKernels)->policy_bytes, 0U);
}

TEST(CcclBlob, ReadsABlobInsideABlob) {
  const std::string inner = blob_of({"policy", "_Z4scanv"});
  const auto read =
      read_cccl_blob(blob_of({}, 80, "").substr(0, 20) + BinaryWriter().u64(inner.size()).bytes() + inner, kKernels);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->policy_bytes, 6U);
}

TEST(CcclBlob, RejectsEveryTruncationAndWrongFields) {
  const std::string blob = blob_of({"policy", "_Z4scanv"});
  ASSERT_FALSE(corrupt(blob));
  const std::size_t code_end = blob.find(kCode) + kCode.size();
  const std::size_t policy_end = code_end + 8 + 6;
  for (std::size_t size = 0; size < blob.size(); ++size) {
    // A blob that ends after a section is complete; the envelope's checksum detects that it is shorter.
    if (size == code_end || size == policy_end) continue;
    EXPECT_TRUE(corrupt(std::string_view(blob).substr(0, size))) << size;
  }
  EXPECT_TRUE(corrupt(blob + '\0')) << "half a length";
  EXPECT_TRUE(corrupt("CCCLSER2" + blob.substr(8))) << "another version";
  EXPECT_TRUE(corrupt(blob_of({}, 0))) << "no capability";
  EXPECT_TRUE(corrupt(blob_of({}, 10'000))) << "no capability";
  EXPECT_TRUE(corrupt(blob_of({}, 80, std::string(5000, ' ')))) << "no cubin near the beginning";
  std::string long_section = blob;
  long_section.replace(code_end, 8, BinaryWriter().u64(~std::uint64_t{0}).bytes());
  EXPECT_TRUE(corrupt(long_section));
}

TEST(CcclArtifact, DescribesAnArtifactAndReturnsTheLibrarysBytes) {
  const std::string blob = blob_of({"policy", "_Z4initv", "_Z4scanv"});
  const Artifact artifact = artifact_of(cccl::exclusive_scan<std::int32_t>(), blob, 80);
  const auto info = cccl::artifact_info(artifact);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->capability, 80);
  EXPECT_EQ(info->policy_bytes, 6U);
  EXPECT_EQ(info->kernels, kKernels);
  EXPECT_EQ(info->release, "1.2.1");
  EXPECT_EQ(info->spec, cccl::exclusive_scan<std::int32_t>().text());
  EXPECT_EQ(cccl::library_bytes(artifact)->view(), blob);
}

TEST(CcclArtifact, OtherFormsAndContradictionsAreErrors) {
  Artifact cubin;
  cubin.target.form = Form::Cubin;
  EXPECT_EQ(cccl::artifact_info(cubin).error().code, Code::InvalidArgument);
  EXPECT_EQ(cccl::library_bytes(cubin).error().code, Code::InvalidArgument);
  EXPECT_EQ(cccl::cuda_compute_bytes({cubin}).error().code, Code::InvalidArgument);
  const cccl::Spec spec = cccl::reduce<double>();
  EXPECT_EQ(cccl::artifact_info(artifact_of(spec, blob_of({}, 90), 80)).error().code, Code::Corrupt);
  EXPECT_EQ(cccl::artifact_info(artifact_of(spec, "no blob", 80)).error().code, Code::Corrupt);
}

TEST(CcclComputeForm, ListsClassFieldsAndTheBuildOfEachCapability) {
  const cccl::Spec spec = cccl::reduce<double>();
  const auto bytes = cccl::cuda_compute_bytes({artifact_of(spec, "newer", 90), artifact_of(spec, "older", 80)});
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  // Read from cuda.compute 1.2.1: cuda.compute.serialize(make_reduce_into(...)) of two arrays of float64.
  BinaryWriter expected;
  const auto text = [&](std::string_view value) { add_section(expected, value); };
  const auto type = [&] { expected.u64(8).u64(8).u32(10); };
  const auto op = [&](std::uint32_t kind) {
    expected.u32(kind);
    for (const char* field : {"", "", "ltoir"}) text(field);
    expected.u32(1).u64(0).u32(0);
  };
  expected.raw("CCCLPYS1", 8);
  text("1.2.1");
  text("_Reduce");
  expected.u8(0);
  for (int i = 0; i < 2; ++i) {
    expected.u8(1).u32(8);
    type();
    op(0);
    op(0);
  }
  op(2);
  type();
  expected.u32(2).u32(80);
  text("older");
  expected.u32(90);
  text("newer");
  EXPECT_EQ(bytes->view(), expected.bytes());
}

TEST(CcclComputeForm, WritesEveryPredefinedSpecAndRefusesWhatComputeLacks) {
  for (const cccl::Spec& spec : cccl::predefined_specs()) {
    EXPECT_TRUE(cccl::cuda_compute_bytes({artifact_of(spec, "b", 80)}).has_value()) << spec.name;
  }
  const cccl::Spec spec = cccl::reduce<double>();
  const auto code = [](const std::vector<Artifact>& artifacts) {
    return cccl::cuda_compute_bytes(artifacts).error().code;
  };
  EXPECT_EQ(code({}), Code::InvalidArgument);
  EXPECT_EQ(code({artifact_of(spec, "b", 80), artifact_of(spec, "c", 80)}), Code::InvalidArgument) << "twice";
  EXPECT_EQ(code({artifact_of(spec, "b", 80), artifact_of(cccl::reduce<float>(), "c", 90)}), Code::InvalidArgument);
  EXPECT_EQ(code({artifact_of(spec, "b", 80, "1.1.1")}), Code::Unsupported) << "another form of reduce";
  EXPECT_EQ(code({artifact_of(spec, "b", 80, "1.2.9")}), Code::Unsupported) << "a release that kiln does not know";
  const auto each = cccl::Spec::parse(R"({"algorithm": "for", "iterators": ["i32"],
      "operators": [{"name": "f", "source": "extern \"C\" __device__ void f(void*) {}"}]})");
  ASSERT_TRUE(each.has_value()) << each.error().message;
  EXPECT_EQ(code({artifact_of(*each, "b", 80)}), Code::Unsupported);
}

}  // namespace
}  // namespace kiln::test
