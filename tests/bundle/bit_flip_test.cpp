// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/bundles.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln::test {
namespace {

/// A small bundle with every kind of content, and all queries that it supports.
class Flips : public testing::Test {
 protected:
  static std::vector<BundleMember> members() {
    return {
        member_of("a.cu", Target::sm(80), {.size = 300, .dependency_set = dependency_set_number(1, 1), .packs = true}),
        member_of("b.cu", {"sm_90", Form::Ptx}, {.size = 21})};
  }

  /// Opens the bytes and queries everything. Returns false if it served wrong bytes. Sets `rejected_` if anything was
  /// not served, and `verified_` to the result of a full verification.
  bool right(const std::string& bytes, const TrustPolicy* policy) {
    rejected_ = false;
    verified_ = false;
    const Bytes view(nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    const auto bundle = Bundle::open(bundle_in_memory(view, "flipped"), policy);
    if (!bundle) {
      rejected_ = true;
      return true;
    }
    bool all = true;
    for (const BundleMember& member : members_) all = right(**bundle, member) && all;
    verified_ = (*bundle)->verify().has_value();
    return all;
  }
  bool right(Bundle& bundle, const BundleMember& member) {
    const Artifact expected = kept(member.artifact);
    const auto hit = bundle.get(member.key, {});
    if (!hit) rejected_ = true;
    if (hit && (!*hit || !same((*hit)->artifact, expected))) return false;
    const auto found = bundle.find(member.unit, member.artifact.target);
    if (!found) rejected_ = true;
    if (found && (!*found || (*found)->key != member.key || !same((*found)->artifact, expected))) return false;
    const auto reported = bundle.dependency_sets(member.request, Store::kMaxDependencySets, {});
    if (!reported) rejected_ = true;
    const std::size_t due = member.artifact.dependency_set ? 1 : 0;
    return !reported || (reported->size() == due && (due == 0 || reported->front() == *member.artifact.dependency_set));
  }

  /// Returns true for flips to skip. Under the sanitizers, where a flip takes a millisecond, only one bit of each byte
  /// after the header fields is flipped. The optimized build flips all bits.
  static bool passed_over(std::size_t bit) {
    constexpr std::size_t kFields = 512;
    return kShadowMemory && bit / 8 >= kFields && bit % 8 != bit / 8 % 8;
  }

  const std::vector<BundleMember> members_ = members();
  bool rejected_ = false;
  bool verified_ = false;
};

TEST_F(Flips, FlipsInUnsignedBundleAreNeverServedAndAlwaysDetected) {
  std::string bytes = image_of(members_).to_file();
  ASSERT_TRUE(right(bytes, nullptr) && !rejected_ && verified_);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (passed_over(bit)) continue;
    const auto mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    ASSERT_TRUE(right(bytes, nullptr)) << "wrong bytes with bit " << bit << " flipped";
    ASSERT_FALSE(verified_) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST_F(Flips, FlipsInSignedBundleAreNeverServedAndHeaderFlipsAreRejectedAtOpen) {
  const SecretKey key = SecretKey::generate();
  TrustPolicy policy;
  policy.add_key(key.public_key(), "local");
  const BundleImage image = image_of(members_, &key);
  std::string bytes = image.to_file();
  ASSERT_TRUE(right(bytes, &policy) && !rejected_ && verified_);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (passed_over(bit)) continue;
    const auto mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    ASSERT_TRUE(right(bytes, &policy)) << "wrong bytes with bit " << bit << " flipped";
    ASSERT_FALSE(verified_) << "bit " << bit;
    if (bit / 8 < image.head.size()) {
      ASSERT_TRUE(rejected_) << "bit " << bit;
    }
    bytes[bit / 8] ^= mask;
  }
}

TEST_F(Flips, WrongLengthsAreRejected) {
  const std::string bytes = image_of(members_).to_file();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(open_bytes(bytes.substr(0, size)).has_value()) << size;
  }
  for (const std::size_t more : {1, 16, 4096})
    ASSERT_FALSE(open_bytes(bytes + std::string(more, '\0')).has_value()) << more;
}

}  // namespace
}  // namespace kiln::test
