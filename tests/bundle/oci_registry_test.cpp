// With the real docker-registry and the real skopeo.
#include <gtest/gtest.h>

#include <cstdio>

#include "bundle/oci_layout.hpp"
#include "support/bundle_pieces.hpp"
#include "support/registry.hpp"
#include "support/temporary_directory.hpp"

namespace kiln {
namespace {

using test::pieces;
using test::read_pieces;
using test::skopeo;
using test::skopeo_copy;
using test::slurp;

constexpr std::size_t kGroups = 14;
constexpr std::size_t kGroupSize = 200'000;

/// The names in a layout's folder of blobs, which are their digests.
std::set<std::string> blobs_of(const std::string& layout) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(layout + "/blobs/sha256")) {
    names.insert(entry.path().filename());
  }
  return names;
}

void expect_same_bundle(const BundleImage& image, const std::string& path) {
  const auto source = open_bundle_source(path);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto back = read_pieces(**source, image);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->head == image.head);
  EXPECT_TRUE(back->groups == image.groups);
}

class OciRegistry : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::Registry::available()) {
      GTEST_SKIP() << "docker-registry or skopeo is not installed (tools/setup.sh installs the packages)";
    }
    registry_.emplace();
  }
  void write(const BundleImage& image, const std::string& name) {
    const Status written = write_oci_layout(image, folder_.path(name));
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  std::string layout(const std::string& name) const { return "oci:" + folder_.path(name) + ":latest"; }

  test::TemporaryDirectory folder_;
  std::optional<test::Registry> registry_;
};

TEST_F(OciRegistry, GivesBackABundleIdentical) {
  const BundleImage image = pieces(kGroups, kGroupSize);
  write(image, "out");
  ASSERT_EQ(skopeo_copy(layout("out"), registry_->image("kernels:1")), "");
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:1"), layout("back")), "");
  EXPECT_EQ(blobs_of(folder_.path("out")), blobs_of(folder_.path("back"))) << "no blob was converted on the way";
  expect_same_bundle(image, folder_.path("back"));
}

TEST_F(OciRegistry, MovesOneUnitWhenOneChanged) {
  BundleImage image = pieces(kGroups, kGroupSize);
  write(image, "first");
  ASSERT_EQ(skopeo_copy(layout("first"), registry_->image("kernels:1")), "");
  const std::uint64_t first = registry_->received();
  const std::uint64_t stored = registry_->stored();
  ASSERT_GT(first, kGroups * kGroupSize);

  // What a changed unit changes: its group, the description, and in the head the digests of both.
  image.groups[7] = test::payload_of(test::key_number(1000), kGroupSize);
  image.groups[0].back() = static_cast<char>(image.groups[0].back() ^ 1);
  image.head.back() = static_cast<char>(image.head.back() ^ 1);
  write(image, "second");
  ASSERT_EQ(skopeo_copy(layout("second"), registry_->image("kernels:2")), "");
  const std::uint64_t second = registry_->received() - first;
  const std::uint64_t appeared = registry_->stored() - stored;

  const double share = 100.0 * static_cast<double>(second) / static_cast<double>(first);
  std::printf(
      "figure: one of %zu units changed: the registry received %ju bytes after %ju, %.1f %%; blobs of %ju bytes "
      "appeared beside %ju\n",
      kGroups, static_cast<std::uintmax_t>(second), static_cast<std::uintmax_t>(first), share,
      static_cast<std::uintmax_t>(appeared), static_cast<std::uintmax_t>(stored));
  EXPECT_LE(share, 15.0);
  EXPECT_GT(second, appeared) << "what the registry keeps was received";
  EXPECT_LE(static_cast<double>(appeared), 0.15 * static_cast<double>(stored));
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:2"), layout("back")), "");
  expect_same_bundle(image, folder_.path("back"));
  // The same tag may be taken again, with nothing to move but manifests.
  const std::uint64_t before = registry_->received();
  ASSERT_EQ(skopeo_copy(layout("second"), registry_->image("kernels:1")), "");
  EXPECT_LT(registry_->received() - before, kGroupSize / 4);
}

TEST_F(OciRegistry, CarriesABundleToASiteWithoutANetwork) {
  const BundleImage image = pieces(3, 10'000);
  write(image, "out");
  const std::string archive = "oci-archive:" + folder_.path("kernels.tar") + ":latest";
  ASSERT_EQ(skopeo_copy(layout("out"), registry_->image("kernels:1")), "");
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:1"), archive), "");
  test::Registry other;
  ASSERT_EQ(skopeo_copy(archive, other.image("mirror/kernels:1")), "");
  ASSERT_EQ(skopeo_copy(other.image("mirror/kernels:1"), layout("there")), "");
  EXPECT_EQ(blobs_of(folder_.path("out")), blobs_of(folder_.path("there")));
  expect_same_bundle(image, folder_.path("there"));
}

TEST_F(OciRegistry, GivesOneKindOfHostWhatItNeeds) {
  const BundleImage image = pieces(3, 10'000);
  write(image, "out");
  ASSERT_EQ(skopeo_copy(layout("out"), registry_->image("kernels:1")), "");
  for (const std::string architecture : {"amd64", "arm64"}) {
    ASSERT_EQ(skopeo({"--override-arch", architecture, "copy", "--preserve-digests", "--src-tls-verify=false",
                      registry_->image("kernels:1"), layout(architecture)}),
              "");
    expect_same_bundle(image, folder_.path(architecture));
  }
}

TEST_F(OciRegistry, SaysWhatToDoWhereACopyCompressedTheLayers) {
  const BundleImage image = pieces(3, 10'000);
  write(image, "out");
  ASSERT_EQ(skopeo({"copy", "--all", "--dest-tls-verify=false", layout("out"), registry_->image("kernels:1")}), "");
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:1"), layout("back")), "");
  const auto source = open_bundle_source(folder_.path("back"));
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, Code::Corrupt);
  EXPECT_NE(source.error().message.find("--preserve-digests"), std::string::npos) << source.error().message;
}

}  // namespace
}  // namespace kiln
