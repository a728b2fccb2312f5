// SPDX-License-Identifier: Apache-2.0
#include "conformance/store_conformance.hpp"

#include <map>
#include <utility>

#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

/// A bundle that is rewritten and reopened after each put, so that the conformance suite can put into it.
class RewrittenBundle final : public Store {
 public:
  explicit RewrittenBundle(std::string path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) members_ = opened()->members().value();
    rewrite();
  }

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override {
    return bundle()->get(key, context);
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override {
    return bundle()->dependency_sets(request, limit, context);
  }
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& /*context*/) override {
    BundleMember member;
    member.kind = "cuda";
    member.unit = {key.digest};
    member.request = {key.digest};
    member.key = key;
    member.artifact = artifact;
    member.artifact.dependency_set.reset();  // the keys of the suite are arbitrary and match no dependency set
    MutexLock lock(mutex_);
    members_.push_back(std::move(member));
    rewrite();
    return {};
  }
  Status add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) override { return {}; }
  std::string describe() const override { return "bundle"; }

 private:
  std::unique_ptr<Bundle> opened() const { return Bundle::open(open_bundle_file(path_).value(), nullptr).value(); }
  std::shared_ptr<Bundle> bundle() {
    MutexLock lock(mutex_);
    return bundle_;
  }
  void rewrite() KILN_REQUIRES(mutex_) {
    write_text(path_ + ".new", image_of(members_).to_file());
    std::filesystem::rename(path_ + ".new", path_);
    bundle_ = opened();
  }

  const std::string path_;
  Mutex mutex_;
  std::vector<BundleMember> members_ KILN_GUARDED_BY(mutex_);
  std::shared_ptr<Bundle> bundle_ KILN_GUARDED_BY(mutex_);
};

class BundleSetup final : public StoreSetup {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<RewrittenBundle>(directory_.path("a.kiln")); }
  bool persistent() const override { return true; }

 private:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Bundles, StoreConformance,
                         testing::Values(StoreHarness{.name = "bundle",
                                                      .make = [] { return std::make_unique<BundleSetup>(); },
                                                      .keeps_dependency_sets = false,
                                                      .keeps_costs_and_logs = false}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kiln::test
