// SPDX-License-Identifier: Apache-2.0
#include "bundle/oci_layout.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/hash.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/tar.hpp"
#include "support/fixtures/bundle_parts.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using test::pieces;
using test::read_pieces;
using test::read_text;
using test::write_text;

/// Returns every file below a directory, by its relative path.
std::map<std::string, std::string> contents(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const std::string& file : test::files_below(directory)) files[file.substr(directory.size())] = read_text(file);
  return files;
}

class OciLayout : public testing::Test {
 protected:
  void SetUp() override {
    const Status written = write_oci_layout(image_, path_);
    ASSERT_TRUE(written.has_value()) << written.error().message;
  }

  std::string blob(const Digest& digest) const { return path_ + "/blobs/sha256/" + digest.hex(); }
  OciDescriptor image_descriptor() const { return parse_oci_index(read_text(path_ + "/index.json")).value().at(0); }
  std::vector<OciDescriptor> manifests() const {
    return parse_oci_index(read_text(blob(image_descriptor().digest))).value();
  }
  OciManifest manifest() const { return parse_oci_manifest(read_text(blob(manifests().at(0).digest))).value(); }
  OciDescriptor layer(std::size_t number) const { return manifest().layers.at(number); }

  OciDescriptor put(const char* media_type, const std::string& bytes) const {
    OciDescriptor descriptor{media_type, sha256(bytes), bytes.size(), "", ""};
    write_text(blob(descriptor.digest), bytes);
    return descriptor;
  }
  /// Replaces the contents of the layout with this image only.
  void become(const std::vector<std::string>& layers, const std::string& config_text = "") {
    fs::remove_all(path_ + "/blobs/sha256");
    fs::create_directories(path_ + "/blobs/sha256");
    OciManifest made;
    for (const std::string& bytes : layers) made.layers.push_back(put(kOciLayer, bytes));
    made.config = put(kOciConfig, config_text.empty() ? encode_oci_config("amd64", made.layers) : config_text);
    write_text(path_ + "/index.json", encode_oci_index({{put(kOciManifest, encode_oci_manifest(made))}}));
  }

  Result<BundleImage> read() const {
    const auto source = open_oci_layout(path_);
    if (!source) return source.error();
    return read_pieces(**source, image_);
  }
  /// Expects that the layout is rejected as corrupt with a message that contains `words`.
  void expect_rejected(const std::string& words) const {
    const Result<BundleImage> result = read();
    ASSERT_FALSE(result.has_value()) << "expected: " << words;
    EXPECT_EQ(result.error().code, Code::Corrupt);
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  }
  std::string tar_of(std::initializer_list<TarInput> files) const { return write_tar("kiln/", files).value(); }

  const BundleImage image_ = pieces(3, 1000, 700);
  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path("layout");
};

TEST_F(OciLayout, RoundTripsBundle) {
  const Result<BundleImage> back = read();
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(back->head == image_.head);
  EXPECT_TRUE(back->groups == image_.groups);
  EXPECT_TRUE(is_oci_layout(path_));
  EXPECT_FALSE(is_oci_layout(directory_.path()));
}

TEST_F(OciLayout, EqualImagesGiveEqualFiles) {
  ASSERT_TRUE(write_oci_layout(image_, directory_.path("again")).has_value());
  EXPECT_TRUE(contents(path_) == contents(directory_.path("again")));
}

TEST_F(OciLayout, UnchangedGroupsKeepTheirLayers) {
  BundleImage changed = image_;
  changed.groups[2][5] = static_cast<char>(changed.groups[2][5] ^ 1);
  const std::vector<OciDescriptor> before = manifest().layers;
  fs::remove_all(path_);
  ASSERT_TRUE(write_oci_layout(changed, path_).has_value());
  const std::vector<OciDescriptor> after = manifest().layers;
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i] == after[i], i != 2) << i;
}

TEST_F(OciLayout, HasImagePerHostArchitectureOverSameLayers) {
  EXPECT_EQ(image_descriptor().media_type, kOciIndex);
  EXPECT_EQ(image_descriptor().reference, "latest");
  std::vector<std::string> architectures;
  for (const OciDescriptor& one : manifests()) {
    architectures.push_back(one.architecture);
    EXPECT_EQ(parse_oci_manifest(read_text(blob(one.digest))).value().layers, manifest().layers);
  }
  EXPECT_EQ(architectures, (std::vector<std::string>{"amd64", "arm64"}));
}

TEST_F(OciLayout, LayersUnpackToDirectoryOfMountedImage) {
  const std::string root = directory_.path("root");
  fs::create_directory(root);
  for (const OciDescriptor& one : manifest().layers) {
    // Like image unpackers: the directory must stay writable between two layers.
    const std::string command = "tar --delay-directory-restore -xpf " + blob(one.digest) + " -C " + root +
                                " 2>&1 && chmod u+w " + root + "/kiln";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  struct stat status;
  ASSERT_EQ(stat((root + "/kiln/group-0001").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0444u);
  EXPECT_EQ(status.st_mtime, 0);
  const auto source = open_bundle_source(root);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  const Result<BundleImage> back = read_pieces(**source, image_);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(back->to_file() == image_.to_file());
}

TEST_F(OciLayout, SupportsEmptyAndEqualGroups) {
  BundleImage odd = image_;
  odd.groups[1].clear();
  odd.groups[3] = odd.groups[2];
  const std::string path = directory_.path("odd");
  ASSERT_TRUE(write_oci_layout(odd, path).has_value());
  const auto source = open_oci_layout(path);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  const Result<BundleImage> back = read_pieces(**source, odd);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(back->groups == odd.groups);
}

TEST_F(OciLayout, DoesNotOverwriteExistingFiles) {
  const Status again = write_oci_layout(image_, path_);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Code::InvalidArgument);
  for (const char* name : {"", "a/b", "-x", ".x", "ü", "a b"}) {
    EXPECT_FALSE(write_oci_layout(image_, directory_.path("other"), name).has_value()) << name;
  }
  EXPECT_FALSE(fs::exists(directory_.path("other")));
  EXPECT_FALSE(write_oci_layout({image_.head, {}}, directory_.path("other")).has_value());
}

TEST_F(OciLayout, WrongLayerIsRejectedOnFirstUse) {
  const std::string file = blob(layer(2).digest);
  std::string bytes = read_text(file);
  bytes[1500] = static_cast<char>(bytes[1500] ^ 1);
  write_text(file, bytes);
  const auto source = open_oci_layout(path_);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  EXPECT_TRUE((*source)->head_size().has_value());
  std::vector<std::uint8_t> group(image_.groups[1].size());
  EXPECT_TRUE((*source)->read_group({1, 0, group.size()}, 0, group).has_value());
  expect_rejected(layer(2).digest.hex() + " does not match its name");
}

TEST_F(OciLayout, MissingLayerIsRejected) {
  const Digest digest = layer(2).digest;
  fs::remove(blob(digest));
  expect_rejected(digest.hex() + " is missing");
}

TEST_F(OciLayout, LayerOfDifferentSizeIsRejected) {
  const Digest digest = layer(2).digest;
  fs::resize_file(blob(digest), 1024);
  expect_rejected(digest.hex() + " has 1024 bytes");
}

TEST_F(OciLayout, ExtraBlobIsRejected) {
  const std::string name = put(kOciLayer, "unreferenced data").digest.hex();
  expect_rejected(name + " is not part of the image");
  fs::remove(path_ + "/blobs/sha256/" + name);
  ASSERT_TRUE(read().has_value());
  write_text(path_ + "/blobs/sha256/notes.txt", "");
  expect_rejected("notes.txt is not part of the image");
}

TEST_F(OciLayout, WrongManifestOrConfigIsRejected) {
  for (const Digest& digest : {image_descriptor().digest, manifests().at(1).digest, manifest().config.digest}) {
    const std::string bytes = read_text(blob(digest));
    std::string other = bytes;
    other[other.size() / 2] = static_cast<char>(other[other.size() / 2] ^ 1);
    write_text(blob(digest), other);
    expect_rejected(digest.hex() + " does not match its name");
    write_text(blob(digest), bytes);
  }
  EXPECT_TRUE(read().has_value());
}

TEST_F(OciLayout, ConfigWithOtherLayersIsRejected) {
  const std::string first = tar_of({{"kiln/head", image_.head}, {"kiln/group-0000", image_.groups[0]}});
  become({first}, encode_oci_config("amd64", {{OciDescriptor{kOciLayer, sha256("another"), 0, "", ""}}}));
  expect_rejected("lists other layers");
  become({first}, R"({"rootfs":{"type":"layers","diff_ids":[]}})");
  expect_rejected("lists other layers");
  for (const char* config :
       {R"({"rootfs":{"type":"folders","diff_ids":[]}})", R"({"rootfs":{"type":"layers"}})", "{}"}) {
    become({first}, config);
    expect_rejected("its rootfs is not a list of layers");
  }
}

TEST_F(OciLayout, LayersThatAreNotGroupsAreRejected) {
  const TarInput head{"kiln/head", image_.head};
  const TarInput zero{"kiln/group-0000", image_.groups[0]};
  const TarInput one{"kiln/group-0001", image_.groups[1]};
  const std::string good = tar_of({head, zero});
  const std::string group = tar_of({one});
  become({good});
  expect_rejected("no layer for group 1");
  become({good, tar_of({{"kiln/group-0002", image_.groups[1]}})});
  expect_rejected("does not have the files of group 1");
  become({tar_of({head}), group});
  expect_rejected("does not have the files of group 0");
  become({tar_of({head, zero, {"kiln/../../etc/passwd", "x"}}), group});
  expect_rejected("does not have the files of group 0");
  become({good, tar_of({{"kiln/group-0001", "short"}})});
  expect_rejected("5 bytes for group 1");
  become({good + std::string(512, '\0'), group});
  expect_rejected("its end is not two empty blocks");
  become({good, group, tar_of({{"kiln/group-0002", image_.groups[2]}}), tar_of({{"kiln/group-0003", image_.groups[3]}}),
          tar_of({{"kiln/group-0004", "more"}})});
  expect_rejected("5 layers, but the bundle has 4 groups");
}

TEST_F(OciLayout, LayersOfWrongSizeAreRejectedBeforeRead) {
  const auto source = open_oci_layout(path_);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  std::vector<std::uint64_t> sizes;
  for (const std::string& group : image_.groups) sizes.push_back(group.size());
  EXPECT_TRUE((*source)->check(image_.head.size(), sizes).has_value());
  sizes[1] += 512;
  const Status rejected = (*source)->check(image_.head.size(), sizes);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::Corrupt);
  EXPECT_NE(rejected.error().message.find("does not have the size that group 1 requires"), std::string::npos)
      << rejected.error().message;
}

TEST_F(OciLayout, SeveralImagesAreRejected) {
  const OciDescriptor one = image_descriptor();
  write_text(path_ + "/index.json", encode_oci_index({{one, one}}));
  expect_rejected("has 2 images");
}

TEST_F(OciLayout, HasSeveralNamedImagesAndStoresEqualLayersOnce) {
  const BundleImage other = pieces(3, 1000, 900);
  const std::string path = directory_.path("several");
  const std::vector<OciImage> images = {{&image_, "v1-sm_80"}, {&other, "v1-sm_90"}, {&image_, "v1-sm_86"}};
  ASSERT_TRUE(write_oci_images(images, path).has_value());
  const auto named = parse_oci_index(read_text(path + "/index.json")).value();
  ASSERT_EQ(named.size(), 3U);
  EXPECT_EQ(named[1].reference, "v1-sm_90");
  EXPECT_EQ(named[0].digest, named[2].digest) << "equal images are stored once";
  const auto source = open_oci_layout(path);
  ASSERT_FALSE(source.has_value());
  EXPECT_NE(source.error().message.find("has 3 images (v1-sm_80, v1-sm_90, v1-sm_86)"), std::string::npos)
      << source.error().message;
  EXPECT_NE(source.error().message.find("'kiln bundle pull oci:"), std::string::npos) << source.error().message;
}

TEST_F(OciLayout, RejectsImagesWithoutDistinctNames) {
  const std::string path = directory_.path("several");
  EXPECT_FALSE(write_oci_images(std::vector<OciImage>{{&image_, "a"}, {&image_, "a"}}, path).has_value());
  EXPECT_FALSE(write_oci_images(std::vector<OciImage>{{&image_, "a"}, {&image_, "a/b"}}, path).has_value());
  EXPECT_FALSE(write_oci_images({}, path).has_value());
  std::vector<OciImage> many;
  for (int i = 0; i < 17; ++i) many.push_back({&image_, "i" + std::to_string(i)});
  EXPECT_FALSE(write_oci_images(many, path).has_value());
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(OciLayout, TagsOfRegistryAreCheckedBeforeUse) {
  const auto tags = parse_oci_tags(R"({"Repository":"a","Tags":["7-sm_90","","../x","-o",7,"7"]})");
  ASSERT_TRUE(tags.has_value());
  EXPECT_EQ(*tags, (std::vector<std::string>{"7-sm_90", "7"}));
  for (const char* text : {"", "[]", "{}", R"({"Tags":"7"})", R"({"Tags":null})", R"({"Tags":[)"}) {
    EXPECT_FALSE(parse_oci_tags(text).has_value()) << text;
  }
  EXPECT_FALSE(parse_oci_tags("{\"Tags\":[\"" + std::string(kMaxOciJsonBytes, 'a') + "\"]}").has_value());
}

TEST_F(OciLayout, DifferingManifestsAreRejected) {
  OciManifest other = manifest();
  other.layers.pop_back();
  other.config = put(kOciConfig, encode_oci_config("arm64", other.layers));
  const OciDescriptor second = put(kOciManifest, encode_oci_manifest(other));
  const OciDescriptor index = put(kOciIndex, encode_oci_index({{manifests().at(0), second}}));
  write_text(path_ + "/index.json", encode_oci_index({{index}}));
  expect_rejected("has other layers than the manifest before it");
}

TEST_F(OciLayout, OtherVersionIsRejectedWithVersion) {
  write_text(path_ + "/oci-layout", R"({"imageLayoutVersion":"2.0.0"})");
  expect_rejected("oci-layout: its imageLayoutVersion is '2.0.0'");
  // A long value is truncated in the message.
  write_text(path_ + "/oci-layout", R"({"imageLayoutVersion":")" + std::string(1'000, '2') + "\"}");
  expect_rejected("'" + std::string(40, '2') + "'");
}

TEST_F(OciLayout, NeverUsesDigestAsPath) {
  const std::string good = read_text(path_ + "/index.json");
  const std::string digest = oci_digest(image_descriptor().digest);
  for (const std::string& bad : {std::string("sha256:../../../../etc/passwd"), "sha512:" + digest.substr(7),
                                 "sha256:" + std::string(64, 'G'), std::string("/etc/passwd"), digest + "0"}) {
    std::string text = good;
    text.replace(text.find(digest), digest.size(), bad);
    write_text(path_ + "/index.json", text);
    expect_rejected("digest is not sha256: and 64 hexadecimal digits");
  }
}

TEST_F(OciLayout, TooLargeOrTooDeepJsonIsRejected) {
  const std::string file = path_ + "/index.json";
  fs::resize_file(file, (4 << 20) + 1);
  expect_rejected("larger than 4 MiB");
  for (const char* deep : {"[", "{\"a\":", "\"\\\"[\"["}) {
    std::string text;
    while (text.size() < 3 << 20) text += deep;
    write_text(file, text);
    expect_rejected("nested too deeply");
  }
  write_text(file, "[" + read_text(path_ + "/oci-layout") + "]");
  expect_rejected("not a JSON object");
  write_text(file, R"({"schemaVersion":2,"manifests":[]})");
  expect_rejected("no manifests");
  fs::remove(file);
  expect_rejected("index.json is missing");
}

// After any change to a file, the layout is rejected or gives the same bundle.
TEST_F(OciLayout, AnyChangedOrTruncatedByteIsRejectedOrServedCorrectly) {
  std::size_t rejected = 0;
  std::size_t served = 0;
  const auto try_it = [&](const std::string& what) {
    const Result<BundleImage> back = read();
    if (back.has_value()) {
      ++served;
      EXPECT_TRUE(back->to_file() == image_.to_file()) << what;
    } else {
      ++rejected;
      EXPECT_EQ(back.error().code, Code::Corrupt) << what << ": " << back.error().message;
    }
  };
  for (const std::string& file : test::files_below(path_)) {
    const std::string bytes = read_text(file);
    // Fewer changes under a sanitizer, which takes twenty times as long.
    const std::size_t step = (bytes.size() > 1000 ? 29 : 3) * (test::kShadowMemory ? 7 : 1);
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ (1 << at % 8));
      write_text(file, other);
      try_it(file + " changed at " + std::to_string(at));
    }
    for (std::size_t size = 0; size < bytes.size(); size += 101) {
      write_text(file, bytes.substr(0, size));
      try_it(file + " cut at " + std::to_string(size));
    }
    write_text(file, bytes);
  }
  EXPECT_TRUE(read().has_value());
  // Only the name of the image may change, because no lookup uses it.
  std::printf("figure: a layout corrupted in %zu ways: %zu rejected, %zu served correctly\n", rejected + served,
              rejected, served);
  EXPECT_LT(served, 50u);
}

}  // namespace
}  // namespace kiln
