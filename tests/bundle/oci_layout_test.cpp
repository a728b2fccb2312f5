#include "bundle/oci_layout.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/hash.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/tar.hpp"
#include "support/bundle_pieces.hpp"
#include "support/files.hpp"
#include "support/sanitizer.hpp"
#include "support/temporary_directory.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using test::pieces;
using test::read_pieces;
using test::slurp;
using test::spit;

/// Every file below a folder, by its path in it.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& file : test::files_below(folder)) files[file.substr(folder.size())] = slurp(file);
  return files;
}

class OciLayout : public testing::Test {
 protected:
  void SetUp() override {
    const Status written = write_oci_layout(image_, path_);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }

  std::string blob(const Digest& digest) const { return path_ + "/blobs/sha256/" + digest.hex(); }
  OciDescriptor image_descriptor() const { return parse_oci_index(slurp(path_ + "/index.json")).value().at(0); }
  std::vector<OciDescriptor> manifests() const {
    return parse_oci_index(slurp(blob(image_descriptor().digest))).value();
  }
  OciManifest manifest() const { return parse_oci_manifest(slurp(blob(manifests().at(0).digest))).value(); }
  OciDescriptor layer(std::size_t number) const { return manifest().layers.at(number); }

  OciDescriptor put(const char* media_type, const std::string& bytes) const {
    OciDescriptor descriptor{media_type, sha256(bytes), bytes.size(), "", ""};
    spit(blob(descriptor.digest), bytes);
    return descriptor;
  }
  /// Makes the layout one of this image, with nothing else in it.
  void become(const std::vector<std::string>& layers, const std::string& config_text = "") {
    fs::remove_all(path_ + "/blobs/sha256");
    fs::create_directories(path_ + "/blobs/sha256");
    OciManifest made;
    for (const std::string& bytes : layers) made.layers.push_back(put(kOciLayer, bytes));
    made.config = put(kOciConfig, config_text.empty() ? encode_oci_config("amd64", made.layers) : config_text);
    spit(path_ + "/index.json", encode_oci_index({{put(kOciManifest, encode_oci_manifest(made))}}));
  }

  Result<BundleImage> read() const {
    const auto source = open_oci_layout(path_);
    if (!source) return source.error();
    return read_pieces(**source, image_);
  }
  /// That it is refused as damaged, with a reason that has these words.
  void expect_refused(const std::string& words) const {
    const Result<BundleImage> result = read();
    ASSERT_FALSE(result.ok()) << "expected: " << words;
    EXPECT_EQ(result.error().code, Code::Corrupt);
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  }
  std::string tar_of(std::initializer_list<TarInput> files) const { return write_tar("kiln/", files).value(); }

  const BundleImage image_ = pieces(3, 1000, 700);
  const test::TemporaryDirectory folder_;
  const std::string path_ = folder_.path("layout");
};

TEST_F(OciLayout, GivesBackTheBundle) {
  const Result<BundleImage> back = read();
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->head == image_.head);
  EXPECT_TRUE(back->groups == image_.groups);
  EXPECT_TRUE(is_oci_layout(path_));
  EXPECT_FALSE(is_oci_layout(folder_.path()));
}

TEST_F(OciLayout, OfEqualImagesIsEqualByteForByte) {
  ASSERT_TRUE(write_oci_layout(image_, folder_.path("again")).ok());
  EXPECT_TRUE(contents(path_) == contents(folder_.path("again")));
}

TEST_F(OciLayout, KeepsTheLayersOfGroupsThatDidNotChange) {
  BundleImage changed = image_;
  changed.groups[2][5] = static_cast<char>(changed.groups[2][5] ^ 1);
  const std::vector<OciDescriptor> before = manifest().layers;
  fs::remove_all(path_);
  ASSERT_TRUE(write_oci_layout(changed, path_).ok());
  const std::vector<OciDescriptor> after = manifest().layers;
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i] == after[i], i != 2) << i;
}

TEST_F(OciLayout, IsAnImageForEachKindOfHostOverTheSameLayers) {
  EXPECT_EQ(image_descriptor().media_type, kOciIndex);
  EXPECT_EQ(image_descriptor().reference, "latest");
  std::vector<std::string> architectures;
  for (const OciDescriptor& one : manifests()) {
    architectures.push_back(one.architecture);
    EXPECT_EQ(parse_oci_manifest(slurp(blob(one.digest))).value().layers, manifest().layers);
  }
  EXPECT_EQ(architectures, (std::vector<std::string>{"amd64", "arm64"}));
}

TEST_F(OciLayout, HasLayersThatTarUnpacksToTheFolderOfAMountedImage) {
  const std::string root = folder_.path("root");
  fs::create_directory(root);
  for (const OciDescriptor& one : manifest().layers) {
    // As whoever unpacks an image does: the folder must stay writable between two layers.
    const std::string command = "tar --delay-directory-restore -xpf " + blob(one.digest) + " -C " + root +
                                " 2>&1 && chmod u+w " + root + "/kiln";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  struct stat status;
  ASSERT_EQ(stat((root + "/kiln/group-0001").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0444u);
  EXPECT_EQ(status.st_mtime, 0);
  const auto source = open_bundle_source(root);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const Result<BundleImage> back = read_pieces(**source, image_);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->whole() == image_.whole());
}

TEST_F(OciLayout, TakesEmptyGroupsAndGroupsOfEqualContent) {
  BundleImage odd = image_;
  odd.groups[1].clear();
  odd.groups[3] = odd.groups[2];
  const std::string path = folder_.path("odd");
  ASSERT_TRUE(write_oci_layout(odd, path).ok());
  const auto source = open_oci_layout(path);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const Result<BundleImage> back = read_pieces(**source, odd);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->groups == odd.groups);
}

TEST_F(OciLayout, IsNotWrittenOverSomethingElse) {
  const Status again = write_oci_layout(image_, path_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Code::InvalidArgument);
  for (const char* name : {"", "a/b", "-x", ".x", "ü", "a b"}) {
    EXPECT_FALSE(write_oci_layout(image_, folder_.path("other"), name).ok()) << name;
  }
  EXPECT_FALSE(fs::exists(folder_.path("other")));
  EXPECT_FALSE(write_oci_layout({image_.head, {}}, folder_.path("other")).ok());
}

TEST_F(OciLayout, WithAWrongLayerIsRefusedWhenTheLayerIsNeeded) {
  const std::string file = blob(layer(2).digest);
  std::string bytes = slurp(file);
  bytes[1500] = static_cast<char>(bytes[1500] ^ 1);
  spit(file, bytes);
  const auto source = open_oci_layout(path_);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_TRUE((*source)->head().ok());
  EXPECT_TRUE((*source)->group(1, 0, image_.groups[1].size()).ok());
  expect_refused(layer(2).digest.hex() + " is not what its name says");
}

TEST_F(OciLayout, WithAMissingLayerIsRefused) {
  const Digest digest = layer(2).digest;
  fs::remove(blob(digest));
  expect_refused(digest.hex() + " is missing");
}

TEST_F(OciLayout, WithALayerOfAnotherSizeIsRefused) {
  const Digest digest = layer(2).digest;
  fs::resize_file(blob(digest), 1024);
  expect_refused(digest.hex() + " has 1024 bytes");
}

TEST_F(OciLayout, WithAnExtraBlobIsRefused) {
  const std::string name = put(kOciLayer, "nobody asked for this").digest.hex();
  expect_refused(name + " is no part of the image");
  fs::remove(path_ + "/blobs/sha256/" + name);
  ASSERT_TRUE(read().ok());
  spit(path_ + "/blobs/sha256/notes.txt", "");
  expect_refused("notes.txt is no part of the image");
}

TEST_F(OciLayout, WithAWrongManifestOrConfigIsRefused) {
  for (const Digest& digest : {image_descriptor().digest, manifests().at(1).digest, manifest().config.digest}) {
    const std::string bytes = slurp(blob(digest));
    std::string other = bytes;
    other[other.size() / 2] = static_cast<char>(other[other.size() / 2] ^ 1);
    spit(blob(digest), other);
    expect_refused(digest.hex() + " is not what its name says");
    spit(blob(digest), bytes);
  }
  EXPECT_TRUE(read().ok());
}

TEST_F(OciLayout, WhoseConfigSaysOtherLayersIsRefused) {
  const std::string first = tar_of({{"kiln/head", image_.head}, {"kiln/group-0000", image_.groups[0]}});
  become({first}, encode_oci_config("amd64", {{OciDescriptor{kOciLayer, sha256("another"), 0, "", ""}}}));
  expect_refused("says other layers");
  become({first}, R"({"rootfs":{"type":"layers","diff_ids":[]}})");
  expect_refused("says other layers");
  for (const char* config :
       {R"({"rootfs":{"type":"folders","diff_ids":[]}})", R"({"rootfs":{"type":"layers"}})", "{}"}) {
    become({first}, config);
    expect_refused("its rootfs is not a list of layers");
  }
}

TEST_F(OciLayout, WhoseLayersAreNotTheGroupsIsRefused) {
  const TarInput head{"kiln/head", image_.head};
  const TarInput zero{"kiln/group-0000", image_.groups[0]};
  const TarInput one{"kiln/group-0001", image_.groups[1]};
  const std::string good = tar_of({head, zero});
  const std::string group = tar_of({one});
  become({good});
  expect_refused("no layer for group 1");
  become({good, tar_of({{"kiln/group-0002", image_.groups[1]}})});
  expect_refused("does not have the files of group 1");
  become({tar_of({head}), group});
  expect_refused("does not have the files of group 0");
  become({tar_of({head, zero, {"kiln/../../etc/passwd", "x"}}), group});
  expect_refused("does not have the files of group 0");
  become({good, tar_of({{"kiln/group-0001", "short"}})});
  expect_refused("5 bytes for group 1");
  become({good + std::string(512, '\0'), group});
  expect_refused("its end is not two empty blocks");
  become({good, group, tar_of({{"kiln/group-0002", image_.groups[2]}}), tar_of({{"kiln/group-0003", image_.groups[3]}}),
          tar_of({{"kiln/group-0004", "more"}})});
  expect_refused("5 layers, and the bundle has 4 groups");
}

TEST_F(OciLayout, WhoseLayersAreNotAsLongAsTheGroupsIsRefusedBeforeOneIsRead) {
  const auto source = open_oci_layout(path_);
  ASSERT_TRUE(source.ok()) << source.error().message;
  std::vector<std::uint64_t> sizes;
  for (const std::string& group : image_.groups) sizes.push_back(group.size());
  EXPECT_TRUE((*source)->check(image_.head.size(), sizes).ok());
  sizes[1] += 512;
  const Status refused = (*source)->check(image_.head.size(), sizes);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::Corrupt);
  EXPECT_NE(refused.error().message.find("not of the size that group 1 needs"), std::string::npos)
      << refused.error().message;
}

TEST_F(OciLayout, OfSeveralImagesIsRefused) {
  const OciDescriptor one = image_descriptor();
  spit(path_ + "/index.json", encode_oci_index({{one, one}}));
  expect_refused("has 2 images");
}

TEST_F(OciLayout, WhoseManifestsDisagreeIsRefused) {
  OciManifest other = manifest();
  other.layers.pop_back();
  other.config = put(kOciConfig, encode_oci_config("arm64", other.layers));
  const OciDescriptor second = put(kOciManifest, encode_oci_manifest(other));
  const OciDescriptor index = put(kOciIndex, encode_oci_index({{manifests().at(0), second}}));
  spit(path_ + "/index.json", encode_oci_index({{index}}));
  expect_refused("has other layers than the manifest before it");
}

TEST_F(OciLayout, OfAnotherVersionIsRefusedWithTheVersion) {
  spit(path_ + "/oci-layout", R"({"imageLayoutVersion":"2.0.0"})");
  expect_refused("oci-layout: its imageLayoutVersion is '2.0.0'");
  // As much of it as a person wants to read.
  spit(path_ + "/oci-layout", R"({"imageLayoutVersion":")" + std::string(1'000, '2') + "\"}");
  expect_refused("'" + std::string(40, '2') + "'");
}

TEST_F(OciLayout, NeverTakesADigestForAPath) {
  const std::string good = slurp(path_ + "/index.json");
  const std::string digest = oci_digest(image_descriptor().digest);
  for (const std::string& bad : {std::string("sha256:../../../../etc/passwd"), "sha512:" + digest.substr(7),
                                 "sha256:" + std::string(64, 'G'), std::string("/etc/passwd"), digest + "0"}) {
    std::string text = good;
    text.replace(text.find(digest), digest.size(), bad);
    spit(path_ + "/index.json", text);
    expect_refused("digest is not sha256: and 64 hexadecimal digits");
  }
}

TEST_F(OciLayout, WithJsonThatIsTooLargeOrTooDeepIsRefused) {
  const std::string file = path_ + "/index.json";
  fs::resize_file(file, (4 << 20) + 1);
  expect_refused("larger than 4 MiB");
  for (const char* deep : {"[", "{\"a\":", "\"\\\"[\"["}) {
    std::string text;
    while (text.size() < 3 << 20) text += deep;
    spit(file, text);
    expect_refused("nested too deeply");
  }
  spit(file, "[" + slurp(path_ + "/oci-layout") + "]");
  expect_refused("not a JSON object");
  spit(file, R"({"schemaVersion":2,"manifests":[]})");
  expect_refused("no manifests");
  fs::remove(file);
  expect_refused("index.json is missing");
}

// Whatever happens to a file of it: refused, or the same bundle.
TEST_F(OciLayout, WithAnyByteChangedOrCutIsRefusedOrServedRight) {
  std::size_t refused = 0;
  std::size_t served = 0;
  const auto try_it = [&](const std::string& what) {
    const Result<BundleImage> back = read();
    if (back.ok()) {
      ++served;
      EXPECT_TRUE(back->whole() == image_.whole()) << what;
    } else {
      ++refused;
      EXPECT_EQ(back.error().code, Code::Corrupt) << what << ": " << back.error().message;
    }
  };
  for (const std::string& file : test::files_below(path_)) {
    const std::string bytes = slurp(file);
    // Fewer of them under a sanitizer, which takes twenty times as long.
    const std::size_t step = (bytes.size() > 1000 ? 29 : 3) * (test::kShadowMemory ? 7 : 1);
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ (1 << at % 8));
      spit(file, other);
      try_it(file + " changed at " + std::to_string(at));
    }
    for (std::size_t size = 0; size < bytes.size(); size += 101) {
      spit(file, bytes.substr(0, size));
      try_it(file + " cut at " + std::to_string(size));
    }
    spit(file, bytes);
  }
  EXPECT_TRUE(read().ok());
  // Only what names the image may change: nothing is served by it.
  std::printf("figure: a layout damaged in %zu ways: %zu refused, %zu served right\n", refused + served, refused,
              served);
  EXPECT_LT(served, 50u);
}

}  // namespace
}  // namespace kiln
