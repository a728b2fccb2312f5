// SPDX-License-Identifier: Apache-2.0
// Bundles whose files another process truncates or overwrites while they are open. This must cause neither a signal nor
// wrong bytes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/files/files.hpp"
#include "bundle/bundle_part_files.hpp"
#include "bundle/oci_layout.hpp"
#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

enum class Layout { File, Directory, Oci };

/// A bundle on disk in one of the layouts, and its files.
class BundleOnDisk {
 public:
  explicit BundleOnDisk(Layout layout) : path_(directory_.path("app.kiln")) {
    for (unsigned i = 0; i < 60; ++i) {
      MemberOptions options;
      options.size = 9000 + 100 * i;
      options.packs = i % 2 == 0;
      if (i % 3 == 0) options.dependency_set = dependency_set_number(i);
      members_.push_back(member_of("unit " + std::to_string(i), Target::sm(80), options));
    }
    write(layout, image_of(members_));
    for (const std::string& file : files_below(directory_.path())) contents_[file] = read_text(file);
  }

  const std::vector<BundleMember>& members() const { return members_; }
  Result<std::unique_ptr<Bundle>> open() const {
    auto source = open_bundle_source(path_);
    if (!source) return std::move(source).error();
    return Bundle::open(std::move(*source), nullptr);
  }
  /// Truncates every file in place to `size` bytes.
  void truncate_all(std::size_t size) const {
    for (const auto& [file, bytes] : contents_) {
      EXPECT_TRUE(bytes.size() <= size || truncate(file.c_str(), static_cast<off_t>(size)) == 0);
    }
  }
  /// Overwrites every byte of every file in place.
  void overwrite_all() const {
    for (const auto& [file, bytes] : contents_) {
      std::string other = bytes;
      for (char& byte : other) byte = static_cast<char>(byte ^ 0x55);
      rewrite(file, other);
    }
  }
  void restore_all() const {
    for (const auto& [file, bytes] : contents_) rewrite(file, bytes);
  }

 private:
  static void rewrite(const std::string& file, const std::string& bytes) {
    const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_TRUE(write_all(fd.get(), bytes, file).has_value());
  }
  void write(Layout layout, const BundleImage& image) const {
    if (layout == Layout::File) return write_text(path_, image.to_file());
    if (layout == Layout::Oci) {
      EXPECT_TRUE(write_oci_layout(image, path_).has_value());
      return;
    }
    fs::create_directory(path_);
    write_text(path_ + "/head", image.head);
    for (std::size_t i = 0; i < image.groups.size(); ++i) {
      write_text(path_ + "/" + bundle_group_name(static_cast<std::uint32_t>(i)), image.groups[i]);
    }
  }

  const TemporaryDirectory directory_;
  const std::string path_;
  std::vector<BundleMember> members_;
  std::map<std::string, std::string> contents_;
};

/// Returns the number of members that a bundle serves. Checks that it serves only correct bytes and rejects the rest.
std::size_t served(Bundle& bundle, const std::vector<BundleMember>& members) {
  std::size_t count = 0;
  for (const BundleMember& member : members) {
    const auto hit = bundle.get(member.key, {});
    if (!hit) {
      EXPECT_EQ(hit.error().code, Code::Corrupt) << hit.error().message;
    } else {
      EXPECT_TRUE(*hit && same((*hit)->artifact, kept(member.artifact)));
      ++count;
    }
    const auto found = bundle.find(member.unit, Target::sm(86));
    EXPECT_TRUE(!found || (*found && (*found)->artifact.bytes == member.artifact.bytes));
    if (const auto dependency_sets = bundle.dependency_sets(member.request, Store::kMaxDependencySets, {})) {
      EXPECT_EQ(dependency_sets->size(), member.artifact.dependency_set != nullptr ? 1U : 0U);
    }
  }
  return count;
}

void expect_rejected_when_truncated(Layout layout) {
  for (const std::size_t size : {0, 100, 5000}) {
    const BundleOnDisk disk(layout);
    const auto unread = disk.open().value();
    const auto half_read = disk.open().value();
    ASSERT_EQ(served(*half_read, {disk.members().begin(), disk.members().begin() + 5}), 5U);
    disk.truncate_all(size);
    EXPECT_EQ(served(*unread, disk.members()), 0U) << size;
    // The index page may already be in memory, and some blobs may be before the end.
    EXPECT_LT(served(*half_read, disk.members()), disk.members().size()) << size;
    EXPECT_FALSE(unread->description().has_value());
    EXPECT_FALSE(unread->members().has_value());
    EXPECT_FALSE(unread->image().has_value());
    EXPECT_FALSE(unread->verify().has_value());
    EXPECT_FALSE(half_read->verify().has_value());
  }
}

void expect_rejected_when_overwritten(Layout layout) {
  const BundleOnDisk disk(layout);
  const auto unread = disk.open().value();
  const auto read_before = disk.open().value();
  ASSERT_EQ(served(*read_before, disk.members()), disk.members().size());
  disk.overwrite_all();
  EXPECT_EQ(served(*unread, disk.members()), 0U);
  EXPECT_EQ(served(*read_before, disk.members()), 0U);
  EXPECT_FALSE(unread->verify().has_value());
  disk.restore_all();
  EXPECT_EQ(served(*unread, disk.members()), disk.members().size()) << "a rejection is not cached";
}

void expect_right_bytes_or_rejections_during_changes(Layout layout) {
  const BundleOnDisk disk(layout);
  const auto shared = disk.open().value();
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (std::size_t round = 0; !done; ++round) {
      if (round % 2 == 0) disk.truncate_all(round % 3 * 3000);
      if (round % 2 == 1) disk.overwrite_all();
      disk.restore_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        (void)served(*shared, disk.members());
        if (const auto fresh = disk.open()) (void)served(**fresh, disk.members());
        (void)shared->verify();
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  done = true;
  changer.join();
  EXPECT_EQ(served(*shared, disk.members()), disk.members().size()) << "the files are unchanged";
}

TEST(ChangedBundle, TruncatedFileIsRejectedWithoutSignal) { expect_rejected_when_truncated(Layout::File); }
TEST(ChangedBundle, TruncatedDirectoryIsRejectedWithoutSignal) { expect_rejected_when_truncated(Layout::Directory); }
TEST(ChangedBundle, TruncatedOciLayoutIsRejectedWithoutSignal) { expect_rejected_when_truncated(Layout::Oci); }

TEST(ChangedBundle, OverwrittenFileIsRejected) { expect_rejected_when_overwritten(Layout::File); }
TEST(ChangedBundle, OverwrittenDirectoryIsRejected) { expect_rejected_when_overwritten(Layout::Directory); }
TEST(ChangedBundle, OverwrittenOciLayoutIsRejected) { expect_rejected_when_overwritten(Layout::Oci); }

TEST(ChangedBundle, FileRewrittenDuringLookupsServesNoOtherBytes) {
  expect_right_bytes_or_rejections_during_changes(Layout::File);
}
TEST(ChangedBundle, DirectoryRewrittenDuringLookupsServesNoOtherBytes) {
  expect_right_bytes_or_rejections_during_changes(Layout::Directory);
}
TEST(ChangedBundle, OciLayoutRewrittenDuringLookupsServesNoOtherBytes) {
  expect_right_bytes_or_rejections_during_changes(Layout::Oci);
}

}  // namespace
}  // namespace kiln::test
