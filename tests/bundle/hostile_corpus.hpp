// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "bundle/bundle_forger.hpp"

namespace kiln::test {

using Role = BundleRow::Role;

/// The members of the hostile bundles.
inline std::vector<BundleMember> members() {
  return {
      member_of("a.cu", Target::sm(80), {.size = 300, .dependency_set = dependency_set_number(1, 1), .packs = true}),
      member_of("a.cu", Target::sm(90), {.size = 300}), member_of("b.cu", Target::sm(80), {.size = 64}),
      member_of("c.cl", Target::opencl("a device"), {.size = 100})};
}

inline std::vector<BundleMember> two_pages_of_members() {
  std::vector<BundleMember> all = members();
  for (int i = 0; i < 25; ++i) all.push_back(member_of("more.cu", Target::sm(100 + i), {.size = 16}));
  return all;
}

/// The operation that must detect the error.
enum class Stage { Open, Asked, Verified };

struct Hostile {
  std::string name;
  Stage stage;
  std::string reason;  ///< substring of the message
  std::function<std::string(Forge&)> make;
  std::vector<BundleMember> of = members();

  friend std::ostream& operator<<(std::ostream& out, const Hostile& hostile) { return out << hostile.name; }
};

inline Hostile whole(std::string name, Stage stage, std::string reason, std::function<std::string(Forge&)> make) {
  return {std::move(name), stage, std::move(reason), std::move(make)};
}

std::vector<Hostile> hostile_headers();
std::vector<Hostile> hostile_heads();
std::vector<Hostile> hostile_rows();
std::vector<Hostile> hostile_pages();
std::vector<Hostile> hostile_frames();
std::vector<Hostile> hostile_contents();
std::vector<Hostile> hostile_wholes();
std::vector<Hostile> hostile_descriptions();

}  // namespace kiln::test
