// SPDX-License-Identifier: Apache-2.0
// Uses a real docker-registry and a real skopeo.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "bundle/bundle.hpp"
#include "bundle/bundle_split.hpp"
#include "bundle/oci_layout.hpp"
#include "support/fixtures/bundles.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/servers/registry.hpp"

namespace kiln {
namespace {

using test::skopeo;
using test::skopeo_copy;

constexpr std::size_t kUnits = 14;
constexpr std::size_t kArtifactSize = 20'000;

/// Returns a signed bundle of units for several GPUs with incompressible artifacts. If `changed` is set, that unit has
/// different artifacts and keys, and so the description, the index and the signature differ too.
BundleImage bundle_of(std::size_t units, const SecretKey& key, std::optional<std::size_t> changed = std::nullopt) {
  std::vector<BundleMember> members;
  for (std::size_t unit = 0; unit < units; ++unit) {
    for (const unsigned capability : {80u, 86u, 89u, 90u, 100u, 120u}) {
      const DependencySet dependency_set = test::dependency_set_number(unit == changed ? 2 : 1);
      members.push_back(test::member_of("unit" + std::to_string(unit) + ".cu", Target::sm(capability),
                                        {.size = kArtifactSize + 1000 * unit, .dependency_set = dependency_set}));
    }
  }
  return test::image_of(members, &key);
}

/// Returns the names in the blob directory of a layout, which are digests.
std::set<std::string> blobs_of(const std::string& layout) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(layout + "/blobs/sha256")) {
    names.insert(entry.path().filename());
  }
  return names;
}

/// Expects that this bundle is at the path: equal bytes, trusted, and verified completely.
void expect_same_bundle(const BundleImage& image, const PublicKey& key, const std::string& path) {
  auto source = open_bundle_source(path);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  TrustPolicy policy;
  policy.add_key(key, "*");
  const auto bundle = Bundle::open(std::move(*source), &policy);
  ASSERT_TRUE(bundle.has_value()) << bundle.error().message;
  const Status verified = (*bundle)->verify();
  EXPECT_TRUE(verified.has_value()) << verified.error().message;
  EXPECT_TRUE((*bundle)->image().value().to_file() == image.to_file());
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
    const Status written = write_oci_layout(image, directory_.path(name));
    ASSERT_TRUE(written.has_value()) << written.error().message;
  }
  std::string layout(const std::string& name) const { return "oci:" + directory_.path(name) + ":latest"; }

  void expect_same(const BundleImage& image, const std::string& name) const {
    expect_same_bundle(image, key_.public_key(), directory_.path(name));
  }

  const SecretKey key_ = SecretKey::generate();
  test::TemporaryDirectory directory_;
  std::optional<test::Registry> registry_;
};

TEST_F(OciRegistry, RoundTripsBundle) {
  const BundleImage image = bundle_of(kUnits, key_);
  write(image, "out");
  ASSERT_EQ(skopeo_copy(layout("out"), registry_->image("kernels:1")), "");
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:1"), layout("back")), "");
  EXPECT_EQ(blobs_of(directory_.path("out")), blobs_of(directory_.path("back"))) << "no blob was converted";
  expect_same(image, "back");
}

TEST_F(OciRegistry, TransfersOneUnitWhenOneChanged) {
  const BundleImage image = bundle_of(kUnits, key_);
  ASSERT_EQ(image.groups.size(), kUnits + 1);
  write(image, "first");
  ASSERT_EQ(skopeo_copy(layout("first"), registry_->image("kernels:1")), "");
  const std::uint64_t first = registry_->received();
  const std::uint64_t stored = registry_->stored();
  ASSERT_GT(first, image.to_file().size());

  const BundleImage changed = bundle_of(kUnits, key_, 7);
  ASSERT_NE(changed.head, image.head);
  write(changed, "second");
  ASSERT_EQ(skopeo_copy(layout("second"), registry_->image("kernels:2")), "");
  const std::uint64_t second = registry_->received() - first;
  const std::uint64_t appeared = registry_->stored() - stored;

  const double share = 100.0 * static_cast<double>(second) / static_cast<double>(first);
  std::printf(
      "figure: one of %zu units changed: the registry received %ju bytes after %ju, %.1f %%; blobs of %ju bytes "
      "appeared in addition to %ju\n",
      kUnits, static_cast<std::uintmax_t>(second), static_cast<std::uintmax_t>(first), share,
      static_cast<std::uintmax_t>(appeared), static_cast<std::uintmax_t>(stored));
  EXPECT_LE(share, 15.0);
  EXPECT_GT(second, appeared) << "the registry received what it stores";
  EXPECT_LE(static_cast<double>(appeared), 0.15 * static_cast<double>(stored));
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:2"), layout("back")), "");
  expect_same(changed, "back");
  // The same tag can be pushed again, and only manifests are transferred.
  const std::uint64_t before = registry_->received();
  ASSERT_EQ(skopeo_copy(layout("second"), registry_->image("kernels:1")), "");
  EXPECT_LT(registry_->received() - before, kArtifactSize);
}

TEST_F(OciRegistry, NodeDownloadsOnlyTheImageOfItsArchitecture) {
  const auto whole = test::open_bytes(bundle_of(kUnits, key_).to_file()).value();
  const std::vector<BundlePart> parts = split_by_architecture(whole->members().value());
  ASSERT_EQ(parts.size(), 6U);
  std::vector<BundleImage> images;
  for (const BundlePart& part : parts) images.push_back(test::image_of(part.members, &key_));
  std::vector<OciImage> named;
  for (std::size_t i = 0; i < parts.size(); ++i) named.push_back({&images[i], "7-" + parts[i].name});
  ASSERT_TRUE(write_oci_images(named, directory_.path("pushed")).has_value());
  for (const OciImage& each : named) {
    ASSERT_EQ(skopeo_copy("oci:" + directory_.path("pushed") + ':' + each.reference,
                          registry_->image("kernels:" + each.reference)),
              "");
  }
  const std::uint64_t before = registry_->sent();
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:7-sm_90"), layout("pulled")), "");
  const std::uint64_t received = registry_->sent() - before;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].name == "sm_90") expect_same(images[i], "pulled");
  }
  std::printf("a node received %llu of %llu bytes in the registry\n", static_cast<unsigned long long>(received),
              static_cast<unsigned long long>(registry_->stored()));
  EXPECT_LT(received, registry_->stored() / 4) << "six architectures of equal size";
}

TEST_F(OciRegistry, TransfersBundleToOfflineSite) {
  const BundleImage image = bundle_of(3, key_);
  write(image, "out");
  const std::string archive = "oci-archive:" + directory_.path("kernels.tar") + ":latest";
  ASSERT_EQ(skopeo_copy(layout("out"), registry_->image("kernels:1")), "");
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:1"), archive), "");
  test::Registry other;
  ASSERT_EQ(skopeo_copy(archive, other.image("mirror/kernels:1")), "");
  ASSERT_EQ(skopeo_copy(other.image("mirror/kernels:1"), layout("there")), "");
  ASSERT_EQ(skopeo_copy(archive, layout("without a registry")), "");
  for (const std::string name : {"there", "without a registry"}) {
    EXPECT_EQ(blobs_of(directory_.path("out")), blobs_of(directory_.path(name)));
    expect_same(image, name);
  }
}

TEST_F(OciRegistry, SingleArchitectureCopyIsComplete) {
  const BundleImage image = bundle_of(3, key_);
  write(image, "out");
  ASSERT_EQ(skopeo_copy(layout("out"), registry_->image("kernels:1")), "");
  for (const std::string architecture : {"amd64", "arm64"}) {
    ASSERT_EQ(skopeo({"--override-arch", architecture, "copy", "--preserve-digests", "--src-tls-verify=false",
                      registry_->image("kernels:1"), layout(architecture)}),
              "");
    expect_same(image, architecture);
  }
}

TEST_F(OciRegistry, ReportsFixIfCopyCompressedLayers) {
  const BundleImage image = bundle_of(3, key_);
  write(image, "out");
  ASSERT_EQ(skopeo({"copy", "--all", "--dest-tls-verify=false", layout("out"), registry_->image("kernels:1")}), "");
  ASSERT_EQ(skopeo_copy(registry_->image("kernels:1"), layout("back")), "");
  const auto source = open_bundle_source(directory_.path("back"));
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().code, Code::Corrupt);
  EXPECT_NE(source.error().message.find("--preserve-digests"), std::string::npos) << source.error().message;
}

}  // namespace
}  // namespace kiln
