// SPDX-License-Identifier: Apache-2.0
// Loading code that NVIDIA's CCCL library really compiled, with that library, into the driver double.
#include <string>

#include "backends/cccl/cccl_module.hpp"
#include "backends/cccl/output_capture.hpp"
#include "session/cccl_fixture.hpp"

namespace kiln::test {
namespace {

class CcclLoaderTest : public CcclTest {
 protected:
  static CcclLoader::LibraryPaths home_at(const std::string& where) {
    return {choose_cccl(where).value(), {toolkit_nvrtc(), toolkit_root() + "/lib64/libnvJitLink.so.13"}};
  }
  /// Returns an artifact with other bytes and a valid checksum.
  static Artifact remade(Artifact artifact, const CcclEnvelope& envelope) {
    artifact.bytes = Bytes::of(encode(envelope));
    return artifact;
  }
  /// Returns why it is not loaded. The library must print nothing to the user's terminal.
  std::string rejection(const Artifact& artifact) {
    const std::size_t calls = driver_.calls("cuLibraryLoadData");
    std::string printed;
    Error error;
    {
      const OutputCapture capture;
      const auto module = loader_.load(artifact);
      if (!module) error = module.error();
      printed = capture.text();
    }
    EXPECT_EQ(printed, "");
    EXPECT_EQ(error.code, Code::LoadRejected) << error.message;
    EXPECT_EQ(driver_.calls("cuLibraryLoadData"), calls) << "the driver was called";
    return error.message;
  }

  CcclLoader loader_{FakeCudaDriver::path(), [] { return Result<CcclLoader::LibraryPaths>(home_at(cccl_package())); }};
};

TEST_F(CcclLoaderTest, ValidBlobIsLoadedAndUnloadedWithoutLeaks) {
  std::string printed;
  {
    const OutputCapture capture;
    const auto module = loader_.load(artifact());
    printed = capture.text();
    ASSERT_TRUE(module.has_value()) << module.error().message;
    EXPECT_EQ(driver_.counts().libraries, 1U);
    const auto& loaded = dynamic_cast<const CcclModule&>(**module);
    EXPECT_EQ(loaded.kernels(), envelope_of(artifact()).kernels);
    EXPECT_EQ((*module)->kernel(loaded.kernels().front()).error().code, Code::InvalidArgument);
  }
  EXPECT_EQ(printed, "");
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclLoaderTest, BlobForOtherCapabilityIsRejected) {
  Artifact other = artifact();
  other.target.architecture = "sm_90";
  EXPECT_NE(rejection(other).find("compiled for capability 80, not for sm_90"), std::string::npos);
  CcclEnvelope mislabelled = envelope_of(artifact());
  mislabelled.capability = 90;
  EXPECT_NE(rejection(remade(other, mislabelled)).find("its code is for capability 80"), std::string::npos);
}

TEST_F(CcclLoaderTest, BlobWithInvalidCodeIsRejected) {
  CcclEnvelope envelope = envelope_of(artifact());
  std::string blob(envelope.blob);
  const std::size_t elf = blob.find("\177ELF");
  ASSERT_NE(elf, std::string::npos);
  blob.replace(elf, 64, 64, 'x');
  envelope.blob = blob;
  EXPECT_NE(rejection(remade(artifact(), envelope)).find("invalid cubin"), std::string::npos);
}

TEST_F(CcclLoaderTest, BlobWithUnknownKernelNameIsRejected) {
  CcclEnvelope envelope = envelope_of(artifact());
  std::string blob(envelope.blob);
  // The code is followed by the names that the library looks up in the driver.
  const std::size_t at = blob.rfind(envelope.kernels.front());
  ASSERT_NE(at, std::string::npos);
  char& letter = blob[at + 10];
  letter = letter == 'x' ? 'y' : 'x';
  envelope.blob = blob;
  EXPECT_NE(rejection(remade(artifact(), envelope)).find("names a kernel that its code does not have"),
            std::string::npos);
}

TEST_F(CcclLoaderTest, CorruptBlobIsRejectedBeforeLibraryCall) {
  std::string bytes(artifact().bytes.view());
  bytes[bytes.size() / 2] ^= 1;
  Artifact corrupt = artifact();
  corrupt.bytes = Bytes::of(bytes);
  EXPECT_NE(rejection(corrupt).find("it is corrupt"), std::string::npos);
}

TEST_F(CcclLoaderTest, BlobOfOtherLibraryIsRejected) {
  CcclEnvelope envelope = envelope_of(artifact());
  envelope.build_id = "0123";
  envelope.release = "0.9";
  EXPECT_NE(rejection(remade(artifact(), envelope)).find("another library built it, of cuda-cccl 0.9"),
            std::string::npos);
}

TEST_F(CcclLoaderTest, DriverRejectionIsReportedWithoutLeaks) {
  driver_.fail("cuLibraryLoadData", 1, cuda::DriverResult::NoBinaryForGpu);
  {
    const OutputCapture capture;
    const auto module = loader_.load(artifact());
    ASSERT_FALSE(module.has_value());
    EXPECT_EQ(module.error().code, Code::LoadRejected);
    EXPECT_NE(module.error().message.find("the driver failed to load"), std::string::npos) << module.error().message;
    EXPECT_EQ(capture.text(), "");
  }
  EXPECT_TRUE(loader_.load(artifact()).has_value());
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclLoaderTest, ConcurrentCaptureIsNotAffected) {
  ASSERT_TRUE(loader_.load(artifact()).has_value());
  const cuda::DriverFunctions& cu = driver_.driver();
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  ASSERT_EQ(cu.DevicePrimaryCtxRetain(&context, 0), cuda::DriverResult::Success);
  ASSERT_EQ(cu.CtxSetCurrent(context), cuda::DriverResult::Success);
  ASSERT_EQ(cu.StreamCreate(&stream, cuda::kStreamNonBlocking), cuda::DriverResult::Success);
  ASSERT_EQ(driver_.application().StreamBeginCapture(stream, cuda::CaptureMode::Global), cuda::DriverResult::Success);
  auto module = loader_.load(artifact());
  EXPECT_TRUE(module.has_value()) << module.error().message;
  if (module) module->reset();
  GraphPointer graph = nullptr;
  EXPECT_EQ(driver_.application().StreamEndCapture(stream, &graph), cuda::DriverResult::Success);
  driver_.application().GraphDestroy(graph);
  cu.StreamDestroy(stream);
  cu.DevicePrimaryCtxRelease(0);
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclLoaderTest, UnalignedBlobIsLoaded) {
  Artifact odd = artifact();
  odd.bytes = Bytes::of("x" + std::string(odd.bytes.view())).slice(1, odd.bytes.size());
  EXPECT_TRUE(loader_.load(odd).has_value());
}

std::string with_length(const std::string& name) {
  std::string text(8, '\0');
  text[0] = static_cast<char>(name.size());
  return text + name;
}

TEST(CcclNames, LengthByteIsNotPartOfPrecedingName) {
  const std::string code = "the code with _Zhelper in it";
  const std::string first = "_Z5firstv";
  // 117 characters, and 117 is the code of u: the radix sorts have such names
  const std::string second = "_Z" + std::string(115, 'e');
  const std::string blob = with_length("_Z5firstv") + code + with_length(first) + with_length(second);
  EXPECT_TRUE(check_cccl_names(blob, code, {first, second}).has_value());
  EXPECT_FALSE(check_cccl_names(blob, code, {first}).has_value());
  EXPECT_FALSE(check_cccl_names(blob, code, {second}).has_value());
  EXPECT_FALSE(check_cccl_names(blob, "other code", {first, second}).has_value());
  EXPECT_FALSE(check_cccl_names(blob, "", {first, second}).has_value());
  EXPECT_FALSE(check_cccl_names(blob + "_Z17another_kernel_xyzv", code, {first, second}).has_value());
  EXPECT_TRUE(check_cccl_names(blob + "_Z\xc8\x9f", code, {first, second}).has_value()) << "compressed code";
}

}  // namespace
}  // namespace kiln::test
