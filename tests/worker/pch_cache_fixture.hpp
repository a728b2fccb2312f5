// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "worker/pch_cache.hpp"

namespace kiln::test {

namespace fs = std::filesystem;

inline Digest key(int number) { return sha256("precompiled header " + std::to_string(number)); }

inline Pch described(const std::string& content) {
  Pch pch;
  pch.size = content.size();
  pch.checksum = xxh3(as_bytes(content));
  pch.log = "cub.cuh(1): warning";
  pch.dependency_set.items.push_back({0, DependencySet::State::Read, "cub/cub.cuh", sha256("cub"), 0});
  pch.dependency_set.items.push_back({1, DependencySet::State::Absent, "cub/cub.cuh", {}, 0});
  FileAccess seen;
  seen.path = "/include/cub/cub.cuh";
  seen.state = FileAccess::State::Read;
  seen.stamp = {1, 2, 3, 4, 5};
  seen.content.digest = sha256("cub");
  pch.observations.push_back(seen);
  return pch;
}

// Acts like a compiler and its host process.
inline bool make(PchCache& pch_cache, int number, const std::string& content) {
  const auto making = pch_cache.try_begin_write(key(number));
  if (making == nullptr) return false;
  write_text(making->path(), content);
  return making->publish(described(content)).has_value();
}

class PchCacheTest : public testing::Test {
 protected:
  PchCache open(std::uint64_t bound = 1 << 20, const std::string& host = "here") {
    return PchCache({.directory = directory_, .max_bytes = bound, .host = host});
  }
  std::string path(int number, const std::string& suffix) const {
    return directory_ + "/" + key(number).hex() + suffix;
  }
  // Returns the number of files with this suffix.
  int count(const std::string& suffix) const {
    int found = 0;
    for (const std::string& file : files_below(directory_)) found += file.ends_with(suffix) ? 1 : 0;
    return found;
  }
  void age(const std::string& file, std::chrono::hours by) const {
    fs::last_write_time(file, fs::last_write_time(file) - by);
  }
  void expect_not_found_and_removed(PchCache& pch_cache, int number) {
    EXPECT_FALSE(pch_cache.find(key(number)).has_value());
    EXPECT_FALSE(fs::exists(path(number, ".kpch")));
    EXPECT_FALSE(fs::exists(path(number, ".pch")));
  }

  TemporaryDirectory scratch_;
  const std::string directory_ = scratch_.path("a/pch");
};

}  // namespace kiln::test
