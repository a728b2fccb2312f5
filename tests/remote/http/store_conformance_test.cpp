// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "conformance/store_conformance.hpp"
#include "remote/remote_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/remote_fixture.hpp"
#include "support/processes/eventually.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::test {
namespace {

/// A remote store behind a real nginx, with TLS and HTTP/2.
class NginxStoreSetup final : public StoreSetup {
 public:
  explicit NginxStoreSetup(bool live) : live_(live) {}
  std::unique_ptr<Store> open() override {
    RemoteStore::Params params;
    params.object_store = open_http_object_store(options_for(nginx_, {.tls = true})).value();
    params.policy = std::make_shared<const TrustPolicy>(trust_.policy());
    params.signer = live_ ? trust_.live_signer() : trust_.ci_signer();
    params.publish_logs = true;
    return std::make_unique<RemoteStore>(std::move(params));
  }
  bool persistent() const override { return true; }

 private:
  const Nginx& nginx_ = shared_nginx("tls_http2", {.tls = true, .http2 = true});
  const bool live_;
  const TrustFixture trust_;
};

StoreHarness store_on_nginx(const std::string& name, bool live) {
  StoreHarness harness;
  harness.name = name;
  harness.make = [live] { return std::make_unique<NginxStoreSetup>(live); };
  harness.keeps_located_dependency_sets = false;
  return harness;
}

INSTANTIATE_TEST_SUITE_P(Http, StoreConformance,
                         testing::Values(store_on_nginx("ci_signer", false), store_on_nginx("live_signer", true)),
                         [](const testing::TestParamInfo<StoreHarness>& tested) { return tested.param.name; });

// 100 kernels, of which the release has 90; the policy names a release and a live namespace.
TEST(HttpStoreRequests, SmallEntryTakesOneRequestAndMissOnePerNamespace) {
  Nginx nginx({.tls = true, .http2 = true});
  const TrustFixture trust;
  RemoteStore::Params params;
  params.object_store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  params.policy = std::make_shared<const TrustPolicy>(trust.policy());
  params.signer = trust.ci_signer();
  RemoteStore store(std::move(params));
  for (unsigned i = 0; i < 90; ++i) {
    ASSERT_TRUE(store.put(key_number(i), artifact_of(key_number(i), 9'000), {}).has_value());
  }
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 180; }));
  unsigned hits = 0;
  for (unsigned i = 0; i < 100; ++i) {
    const auto hit = store.get(key_number(i), {});
    hits += hit && *hit ? 1 : 0;
  }
  EXPECT_EQ(hits, 90u);
  ASSERT_TRUE(eventually([&] { return nginx.requests() >= 180 + 90 + 2 * 10; }));
  EXPECT_EQ(nginx.requests(), 180u + 90 + 2 * 10);
}

}  // namespace
}  // namespace kiln::test
