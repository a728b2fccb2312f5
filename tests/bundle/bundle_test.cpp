// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

std::vector<BundleMember> some_members() {
  return {
      member_of("pip.cu", Target::sm(80), {.size = 3'000, .dependency_set = dependency_set_number(1), .packs = true}),
      member_of("pip.cu", Target::sm(90), {.size = 3'000, .dependency_set = dependency_set_number(1), .packs = true}),
      member_of("pip.cu", {"sm_90", Form::Ptx}, {.size = 700, .packs = true}),
      member_of("join.cu", Target::sm(80), {.size = 10'000}),
      member_of("join.cl", Target::opencl("a device"), {.size = 100})};
}

// A source that counts the reads of blobs.
class CountingSource final : public BundleSource {
 public:
  CountingSource(std::string bytes, int& reads)
      : inner_(bundle_in_memory(Bytes::copy_of(bytes), "counted")), reads_(reads) {}
  Result<std::uint64_t> head_size() override { return inner_->head_size(); }
  Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return inner_->read_head(offset, out);
  }
  Status read_group(const BundleGroup& group, std::uint64_t offset, std::span<std::uint8_t> out) override {
    ++reads_;
    return inner_->read_group(group, offset, out);
  }
  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    return inner_->check(head_size, group_sizes);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::unique_ptr<BundleSource> inner_;
  int& reads_;
};

TEST(Bundle, BlobsForOtherArchitecturesAreNotRead) {
  std::vector<BundleMember> members;
  for (const unsigned architecture : {75U, 80U, 86U, 89U, 90U}) {
    members.push_back(member_of("pip.cu", Target::sm(architecture), {.size = 3'000}));
    members.push_back(member_of("join.cu", Target::sm(architecture), {.size = 3'000}));
  }
  int reads = 0;
  const auto bundle =
      Bundle::open(std::make_unique<CountingSource>(image_of(members).to_file(), reads), nullptr).value();
  EXPECT_EQ(reads, 0) << "opening reads no blob";
  ASSERT_TRUE(bundle->find(unit_key_of("pip.cu"), Target::sm(90)).value().has_value());
  EXPECT_EQ(reads, 1);
  EXPECT_FALSE(bundle->find(unit_key_of("pip.cu"), Target::sm(100)).value().has_value());
  EXPECT_EQ(reads, 1);
  const auto found = bundle->members({}, [](const Target& target) { return target == Target::sm(90); });
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(reads, 4) << "the description and two artifacts";
  EXPECT_EQ(bundle->members()->size(), members.size());
}

TEST(Bundle, GetReturnsEveryArtifactByKey) {
  const auto members = some_members();
  const auto bundle = open_bytes(image_of(members).to_file()).value();
  for (const BundleMember& member : members) {
    const auto hit = bundle->get(member.key, {});
    ASSERT_TRUE(hit.has_value()) << hit.error().message;
    ASSERT_TRUE(hit->has_value());
    EXPECT_TRUE(same((*hit)->artifact, kept(member.artifact)));
    EXPECT_EQ((*hit)->origin, Origin::Bundle);
    EXPECT_EQ((*hit)->artifact.dependency_set, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*hit)->artifact.bytes.data()) % 16, 0u);
  }
  EXPECT_FALSE(bundle->get(key_number(1), {}).value().has_value());
  EXPECT_TRUE(bundle->verify().has_value());
}

TEST(Bundle, FindReturnsBestArtifactForDevice) {
  const auto members = some_members();
  const auto bundle = open_bytes(image_of(members).to_file()).value();
  const UnitKey pip = unit_key_of("pip.cu");
  const auto served = [&](const Target& target, const Bytes* rejected = nullptr) -> std::string {
    auto found = bundle->find(pip, target, rejected).value();
    return found ? found->artifact.target.name() : "nothing";
  };
  EXPECT_EQ(served(Target::sm(80)), "sm_80");
  EXPECT_EQ(served(Target::sm(86)), "sm_80");
  EXPECT_EQ(served(Target::sm(90)), "sm_90");
  EXPECT_EQ(served(Target::sm(120)), "compute_90");
  EXPECT_EQ(served(Target::sm(75)), "nothing");
  EXPECT_FALSE(bundle->find(unit_key_of("other.cu"), Target::sm(80)).value().has_value());
  const auto found = bundle->find(pip, Target::sm(80)).value();
  EXPECT_EQ(found->key, members[0].key);
  EXPECT_EQ(found->request, members[0].request);
}

TEST(Bundle, FindReturnsNextBestArtifactIfDriverRejectedBest) {
  const auto members = some_members();
  const auto bundle = open_bytes(image_of(members).to_file()).value();
  const Bytes rejected = members[1].artifact.bytes;
  const auto found = bundle->find(unit_key_of("pip.cu"), Target::sm(90), &rejected).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->artifact.target.name(), "compute_90");
}

TEST(Bundle, FindReturnsOpenClBinaryOnlyForItsDevice) {
  const auto bundle = open_bytes(image_of(some_members()).to_file()).value();
  const UnitKey unit = unit_key_of("join.cl");
  EXPECT_TRUE(bundle->find(unit, Target::opencl("a device")).value().has_value());
  EXPECT_FALSE(bundle->find(unit, Target::opencl("another device")).value().has_value());
  EXPECT_EQ(bundle->targets(unit).value(), std::vector<Target>{Target::opencl("a device")});
}

TEST(Bundle, TargetsListsTargetsOfUnit) {
  const auto bundle = open_bytes(image_of(some_members()).to_file()).value();
  const std::vector<Target> targets = bundle->targets(unit_key_of("pip.cu")).value();
  std::vector<std::string> names;
  for (const Target& target : targets) names.push_back(target.name());
  EXPECT_EQ(names, (std::vector<std::string>{"sm_80", "sm_90", "compute_90"}));
  EXPECT_TRUE(bundle->targets(unit_key_of("other.cu")).value().empty());
}

TEST(Bundle, ClosuresReturnsDependencySetsOfRequest) {
  const auto members = some_members();
  const auto bundle = open_bytes(image_of(members).to_file()).value();
  EXPECT_EQ(bundle->dependency_sets(members[0].request, Store::kMaxDependencySets, {}).value(),
            std::vector<DependencySet>{dependency_set_number(1)});
  EXPECT_TRUE(bundle->dependency_sets(members[0].request, 0, {}).value().empty());
  EXPECT_TRUE(bundle->dependency_sets(members[3].request, Store::kMaxDependencySets, {}).value().empty());
}

TEST(Bundle, RejectsWrites) {
  const auto bundle = open_bytes(image_of(some_members()).to_file()).value();
  EXPECT_FALSE(bundle->is_writable());
  EXPECT_EQ(bundle->put(key_number(1), artifact_of(key_number(1), 10), {}).error().code, Code::Denied);
  EXPECT_EQ(bundle->add_dependency_set(request_number(1), dependency_set_number(1), {}).error().code, Code::Denied);
}

TEST(Bundle, FirstLookupsFromManyThreadsSucceed) {
  const auto members = some_members();
  const std::string bytes = image_of(members).to_file();
  for (int round = 0; round < 20; ++round) {
    const auto bundle = open_bytes(bytes).value();
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (const BundleMember& member : members) {
          const auto hit = bundle->get(member.key, {});
          if (hit && *hit && same((*hit)->artifact, kept(member.artifact))) ++right;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(right, 4 * static_cast<int>(members.size()));
  }
}

TEST(Bundle, OpensFromFile) {
  const TemporaryDirectory directory;
  const auto members = some_members();
  const std::string path = directory.path("app.kiln");
  write_text(path, image_of(members).to_file());
  auto source = open_bundle_file(path);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  const auto bundle = Bundle::open(std::move(*source), nullptr).value();
  EXPECT_EQ(bundle->describe(), "bundle " + path);
  const auto hit = bundle->get(members[0].key, {}).value();
  ASSERT_TRUE(hit.has_value());
  EXPECT_TRUE(same(hit->artifact, kept(members[0].artifact)));
  EXPECT_FALSE(open_bundle_file(directory.path("none.kiln")).has_value());
  EXPECT_FALSE(open_bundle_file(directory.path()).has_value());
}

}  // namespace
}  // namespace kiln::test
