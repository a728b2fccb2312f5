// SPDX-License-Identifier: Apache-2.0
// Other releases read what this release writes, so equal values must give equal bytes in all releases. A format change
// needs a new version and a new line here. Nothing here is compressed, because that depends on the version of zstd.
#include <gtest/gtest.h>

#include "bundle/bundle_format.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/tar.hpp"
#include "support/fixtures/bundles.hpp"

namespace kiln::test {
namespace {

TEST(BundleFormats, RowOfEachRoleMatchesGolden) {
  BundleRow row;
  row.digest = sha256("a digest");
  row.location = {2, BlobLocation::Method::Zstd, 4096, 100, 1000, sha256("stored")};
  std::string rows = encode_row(row);
  row.role = BundleRow::Role::ByUnit;
  for (const Target& target : {Target::sm(90), Target{"sm_100a", Form::Ptx}, Target::opencl("a device")}) {
    set_target(row, target);
    rows += encode_row(row);
  }
  row.role = BundleRow::Role::ByRequest;
  row.form = {};
  row.variant = 0;
  row.number = 3;
  rows += encode_row(row);
  EXPECT_EQ(sha256(rows).hex(), "5dc5c05c5bc1cb361efe398b7d6814d957dde6cefc656a0fe005b15375bc2776");
}

TEST(BundleFormats, HeaderMatchesGolden) {
  BundleHeader header;
  header.name_space = "acme/vision";
  header.epoch = 7;
  header.row_count = 50;
  header.description = {0, BlobLocation::Method::Raw, 0, 64, 64, sha256("description")};
  header.pages = {{sha256("page 0"), {1}}, {sha256("page 1"), {2}}};
  header.group_sizes = {64, 4096};
  EXPECT_EQ(sha256(encode_bundle_header(header, nullptr)).hex(),
            "1f6bcaa25b0573c839c7699ed8dce41d1f868d630175a10b21a9b751404f2705");
}

TEST(BundleFormats, LayerMatchesGolden) {
  const std::string layer = write_tar("kiln/", {{"kiln/head", "some bytes"}, {"kiln/group-0000", ""}}).value();
  EXPECT_EQ(sha256(layer).hex(), "da5d903e75ca17444481782a1e48335fcc6b08ff2a8387efceefa8a0877c3c63");
}

TEST(BundleFormats, ImageFilesMatchGolden) {
  const OciDescriptor layer{kOciLayer, sha256("layer"), 2048, "", ""};
  const OciDescriptor config{kOciConfig, sha256("config"), 100, "", ""};
  const OciDescriptor manifest{kOciManifest, sha256("manifest"), 300, "arm64", "acme:1"};
  const std::string files = encode_oci_layout_file() + encode_oci_index(std::vector{manifest}) +
                            encode_oci_manifest({config, {layer}}) + encode_oci_config("arm64", std::vector{layer});
  EXPECT_EQ(sha256(files).hex(), "bb59f195f9148f85011f83f1c81e6ad6a9499ebd8ccef5a67e6f2356763e69f9");
}

}  // namespace
}  // namespace kiln::test
