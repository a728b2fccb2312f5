// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "conformance/object_store_conformance.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::test {
namespace {

class NginxObjectStoreSetup final : public ObjectStoreSetup {
 public:
  NginxObjectStoreSetup(const std::string& name, const NginxOptions& wants)
      : nginx_(shared_nginx(name, wants)), wants_(wants) {
    write_secret(directory_.path("token"), wants.token + "\n");
  }
  std::unique_ptr<ObjectStore> open() override {
    HttpOptions options = options_for(nginx_, wants_);
    if (!wants_.token.empty()) options.token_file = directory_.path("token");
    return open_http_object_store(options).value();
  }

 private:
  const Nginx& nginx_;
  const NginxOptions wants_;
  TemporaryDirectory directory_;
};

ObjectStoreHarness on_nginx(const std::string& name, const NginxOptions& wants) {
  return {name, [name, wants] { return std::make_unique<NginxObjectStoreSetup>(name, wants); }};
}

INSTANTIATE_TEST_SUITE_P(Http, ObjectStoreConformance,
                         testing::Values(on_nginx("plain", {}), on_nginx("tls_http2", {.tls = true, .http2 = true}),
                                         on_nginx("bearer", {.token = "a-token.of~tests"}),
                                         on_nginx("mutual_tls",
                                                  {.tls = true, .http2 = true, .client_certificate = true})),
                         [](const testing::TestParamInfo<ObjectStoreHarness>& tested) { return tested.param.name; });

}  // namespace
}  // namespace kiln::test
