// SPDX-License-Identifier: Apache-2.0
// Device code in the driver double: real cubins and PTX of this machine's NVRTC, and bytes that are neither.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fixture.hpp"
#include "support/fakes/cuda_driver/image.hpp"

namespace kiln::test {
namespace {

using driver::Image;
using Parameters = std::vector<std::pair<std::size_t, std::size_t>>;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class FakeImage : public FakeFixture {
 protected:
  Parameters parameters(cuda::Kernel of) {
    Parameters found;
    std::size_t offset = 0;
    std::size_t size = 0;
    while (cu.KernelGetParamInfo(of, found.size(), &offset, &size) == R::Success) found.emplace_back(offset, size);
    return found;
  }
  int attribute(cuda::Kernel of, cuda::FunctionAttribute which, int device = 0) {
    int value = -1;
    EXPECT_EQ(cu.KernelGetAttribute(&value, which, of, device), R::Success);
    return value;
  }
};

TEST_F(FakeImage, ReadsParametersOfCubinsAndPtx) {
  for (const char* target : {"sm_80", "sm_90", "compute_80"}) {
    SCOPED_TRACE(target);
    const cuda::Library library = loaded(target);
    EXPECT_EQ(parameters(kernel(library, "saxpy")), (Parameters{{0, 4}, {4, 4}, {8, 8}, {16, 8}}));
    EXPECT_EQ(parameters(kernel(library, "mixed")), (Parameters{{0, 1}, {8, 8}, {16, 8}, {24, 300}}));
    EXPECT_EQ(parameters(kernel(library, "huge")), (Parameters{{0, 8000}, {8000, 8}}));
    EXPECT_EQ(parameters(kernel(library, "nothing")), Parameters{});
  }
}

TEST_F(FakeImage, ReadsRegistersSharedMemoryAndThreadLimit) {
  using Attribute = cuda::FunctionAttribute;
  for (const char* target : {"sm_80", "sm_90"}) {
    SCOPED_TRACE(target);
    const cuda::Library library = loaded(target);
    const cuda::Kernel mixed = kernel(library, "mixed");
    EXPECT_EQ(attribute(mixed, Attribute::SharedBytes), 1024);
    EXPECT_EQ(attribute(mixed, Attribute::MaxThreadsPerBlock), 128);
    EXPECT_GT(attribute(mixed, Attribute::Registers), 4);
    EXPECT_EQ(attribute(kernel(library, "saxpy"), Attribute::SharedBytes), 0);
    EXPECT_EQ(attribute(kernel(library, "saxpy"), Attribute::MaxThreadsPerBlock), 1024);
  }
}

TEST_F(FakeImage, ReadsDevicesOfCubin) {
  const auto runs = [](const char* target, int device) {
    Image image;
    EXPECT_TRUE(read_cubin(bytes_of(compiled_kernels(target)), image)) << target;
    return image.runs_on(device);
  };
  EXPECT_TRUE(runs("sm_80", 80));
  EXPECT_TRUE(runs("sm_80", 86));
  EXPECT_FALSE(runs("sm_86", 80));
  EXPECT_FALSE(runs("sm_80", 90));
  EXPECT_TRUE(runs("sm_90a", 90));
  EXPECT_FALSE(runs("sm_100a", 103));
  EXPECT_TRUE(runs("sm_100", 103));
}

TEST_F(FakeImage, RejectsCubinAtLoadOrAtFirstUse) {
  cuda::Library library = nullptr;
  EXPECT_EQ(load(compiled_kernels("sm_100"), &library), R::NoBinaryForGpu);
  cuda::Function function = nullptr;
  EXPECT_EQ(cu.KernelGetFunction(&function, kernel(loaded("sm_90"), "nothing")), R::NoBinaryForGpu);
  EXPECT_EQ(launch(kernel(loaded("sm_90"), "nothing"), nullptr), R::NoBinaryForGpu);
  EXPECT_TRUE(driver_.loads().empty());
  ModulePointer module = nullptr;
  EXPECT_EQ(app.ModuleLoadData(&module, compiled_kernels("sm_90").data()), R::NoBinaryForGpu);
}

TEST_F(FakeImage, RejectsInvalidDeviceCode) {
  cuda::Library library = nullptr;
  EXPECT_EQ(load("", &library), R::InvalidImage);
  EXPECT_EQ(load("no device code at all", &library), R::InvalidImage);
  EXPECT_EQ(load(std::string("\x7f"
                             "ELF\2\1\1") +
                     std::string(57, '\0'),
                 &library),
            R::InvalidImage);
  std::string other = compiled_kernels("sm_80");
  other[18] = 62;  // an ELF file of the host's machine type
  EXPECT_EQ(load(other, &library), R::InvalidImage);
}

TEST_F(FakeImage, RejectsNewerPtx) {
  cuda::Library library = nullptr;
  driver_.set_newest_ptx(80);
  EXPECT_EQ(load(compiled_kernels("compute_80"), &library), R::UnsupportedPtxVersion);
  driver_.set_newest_ptx(90);
  EXPECT_EQ(load(compiled_kernels("compute_80"), &library), R::Success);
  EXPECT_EQ(load(compiled_kernels("compute_100"), &library), R::NoBinaryForGpu);
  EXPECT_EQ(load(".version 8.0\n.target what\n", &library), R::InvalidPtx);
}

TEST_F(FakeImage, RejectsTruncatedCubinWithoutOverrun) {
  const std::string& whole = compiled_kernels("sm_80");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // A copy of exactly this length, so that a sanitizer detects an out-of-bounds read.
    const std::vector<std::uint8_t> cut(bytes_of(whole).data(), bytes_of(whole).data() + length);
    Image image;
    ASSERT_FALSE(read_cubin(cut, image) && image.kernels.size() != 4) << length;
    // Only program headers, which are not read here, follow the section table.
    if (length < whole.size() - 4096) {
      ASSERT_FALSE(read_cubin(cut, image)) << length;
    }
  }
}

TEST_F(FakeImage, CubinBeforeUnmappedMemoryIsSafe) {
  const std::string& whole = compiled_kernels("sm_80");
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t room = (whole.size() + page - 1) / page * page;
  auto* const mapped =
      static_cast<char*>(mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_EQ(mprotect(mapped + room, page, PROT_NONE), 0);
  for (std::size_t length = 1; length < whole.size() - 4096; length += 97) {
    char* const image = mapped + room - length;
    std::memcpy(image, whole.data(), length);
    cuda::Library library = nullptr;
    ASSERT_EQ(cu.LibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0), R::InvalidImage) << length;
  }
  munmap(mapped, room + page);
}

TEST_F(FakeImage, FlippedBytesAreSafe) {
  std::string image = compiled_kernels("sm_80");
  for (std::size_t at = 0; at < image.size(); at += 3) {
    const char kept = image[at];
    image[at] = static_cast<char>(~kept);
    Image read;
    (void)read_cubin(bytes_of(image), read);
    image[at] = kept;
  }
}

TEST_F(FakeImage, NvrtcCompilesNextToIt) { EXPECT_FALSE(compiled_kernels("sm_89").empty()); }

}  // namespace
}  // namespace kiln::test
