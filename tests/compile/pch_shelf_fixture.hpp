#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/hash.hpp"
#include "compile/pch_shelf.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {

namespace fs = std::filesystem;

inline Digest key(int number) { return sha256("precompiled header " + std::to_string(number)); }

inline Pch described(const std::string& content) {
  Pch pch;
  pch.size = content.size();
  pch.checksum = xxh3(as_bytes(content));
  pch.closure.items.push_back({0, Closure::State::Read, "cub/cub.cuh", sha256("cub"), 0});
  pch.closure.items.push_back({1, Closure::State::Absent, "cub/cub.cuh", {}, 0});
  Observation seen;
  seen.path = "/include/cub/cub.cuh";
  seen.state = Observation::State::Read;
  seen.stamp = {1, 2, 3, 4, 5};
  seen.asked_ns = 6;
  pch.observations.push_back(seen);
  return pch;
}

// Does what a compiler and its master do.
inline bool make(PchShelf& shelf, int number, const std::string& content) {
  const auto making = shelf.begin(key(number));
  if (making == nullptr) return false;
  spit(making->path(), content);
  return making->publish(described(content)).ok();
}

class PchShelfTest : public testing::Test {
 protected:
  PchShelf open(std::uint64_t bound = 1 << 20, const std::string& host = "here") {
    return PchShelf({.folder = folder_, .size_bound = bound, .host = host});
  }
  std::string path(int number, const std::string& suffix) const { return folder_ + "/" + key(number).hex() + suffix; }
  // How many files have this suffix.
  int count(const std::string& suffix) const {
    int found = 0;
    for (const std::string& file : files_below(folder_)) found += file.ends_with(suffix) ? 1 : 0;
    return found;
  }
  void age(const std::string& file, std::chrono::hours by) const {
    fs::last_write_time(file, fs::last_write_time(file) - by);
  }
  void expect_not_found_and_removed(PchShelf& shelf, int number) {
    EXPECT_FALSE(shelf.find(key(number)).has_value());
    EXPECT_FALSE(fs::exists(path(number, ".kpch")));
    EXPECT_FALSE(fs::exists(path(number, ".pch")));
  }

  TemporaryDirectory directory_;
  const std::string folder_ = directory_.path("a/pch");
};

}  // namespace kiln::test
