#include <gtest/gtest.h>

#include "support/bundles.hpp"
#include "support/sanitizer.hpp"

namespace kiln::test {
namespace {

/// A small bundle with something of everything, and all that can be asked of it.
class Flips : public testing::Test {
 protected:
  static std::vector<BundleMember> members() {
    return {member_of("a.cu", Target::sm(80), {.size = 300, .closure = closure_number(1, 1), .packs = true}),
            member_of("b.cu", {"sm_90", Form::Ptx}, {.size = 21})};
  }

  /// Opens the bytes as they are and asks for everything. False where anything that was served was wrong; `refused`
  /// tells whether anything was not served, `verified` what a check of everything said.
  bool right(const std::string& bytes, const TrustPolicy* policy) {
    refused_ = false;
    verified_ = false;
    const Bytes view(nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    const auto bundle = Bundle::open(bundle_in_memory(view, "flipped"), policy);
    if (!bundle) {
      refused_ = true;
      return true;
    }
    bool all = true;
    for (const BundleMember& member : members_) all = right(**bundle, member) && all;
    verified_ = (*bundle)->verify().ok();
    return all;
  }
  bool right(Bundle& bundle, const BundleMember& member) {
    const Artifact expected = kept(member.artifact);
    const auto hit = bundle.get(member.key);
    if (!hit) refused_ = true;
    if (hit && (!*hit || !same((*hit)->artifact, expected))) return false;
    const auto found = bundle.find(member.unit, member.artifact.target);
    if (!found) refused_ = true;
    if (found && (!*found || (*found)->key != member.key || !same((*found)->artifact, expected))) return false;
    const auto told = bundle.closures(member.request);
    if (!told) refused_ = true;
    const std::size_t due = member.artifact.closure ? 1 : 0;
    return !told || (told->size() == due && (due == 0 || told->front() == *member.artifact.closure));
  }

  /// Under the sanitizers, where a flip takes a millisecond, one bit of each byte behind the header's fields must do.
  /// The optimised build flips them all.
  static bool passed_over(std::size_t bit) {
    constexpr std::size_t kFields = 512;
    return kShadowMemory && bit / 8 >= kFields && bit % 8 != bit / 8 % 8;
  }

  const std::vector<BundleMember> members_ = members();
  bool refused_ = false;
  bool verified_ = false;
};

TEST_F(Flips, OfAnUnsignedBundleAreNeverServedAndAlwaysFound) {
  std::string bytes = image_of(members_).whole();
  ASSERT_TRUE(right(bytes, nullptr) && !refused_ && verified_);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (passed_over(bit)) continue;
    const auto mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    ASSERT_TRUE(right(bytes, nullptr)) << "wrong bytes with bit " << bit << " flipped";
    ASSERT_FALSE(verified_) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST_F(Flips, OfASignedBundleAreNeverServedAndThoseOfItsHeaderAreRefusedAtOnce) {
  const SecretKey key = SecretKey::generate();
  TrustPolicy policy;
  policy.trust(key.public_key(), "local");
  const BundleImage image = image_of(members_, &key);
  std::string bytes = image.whole();
  ASSERT_TRUE(right(bytes, &policy) && !refused_ && verified_);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (passed_over(bit)) continue;
    const auto mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    ASSERT_TRUE(right(bytes, &policy)) << "wrong bytes with bit " << bit << " flipped";
    ASSERT_FALSE(verified_) << "bit " << bit;
    if (bit / 8 < image.head.size()) {
      ASSERT_TRUE(refused_) << "bit " << bit;
    }
    bytes[bit / 8] ^= mask;
  }
}

TEST_F(Flips, OfLengthAreRefused) {
  const std::string bytes = image_of(members_).whole();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(open_bytes(bytes.substr(0, size)).ok()) << size;
  }
  for (const std::size_t more : {1, 16, 4096}) ASSERT_FALSE(open_bytes(bytes + std::string(more, '\0')).ok()) << more;
}

}  // namespace
}  // namespace kiln::test
