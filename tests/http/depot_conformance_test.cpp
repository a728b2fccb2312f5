#include <memory>
#include <string>

#include "conformance/depot_conformance.hpp"
#include "support/nginx_depots.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

class NginxDepotSetup final : public DepotSetup {
 public:
  NginxDepotSetup(const std::string& name, const NginxOptions& wants)
      : nginx_(shared_nginx(name, wants)), wants_(wants) {
    spit(folder_.path("token"), wants.token + "\n");
  }
  std::unique_ptr<Depot> open() override {
    HttpOptions options = options_for(nginx_, wants_);
    if (!wants_.token.empty()) options.token_file = folder_.path("token");
    return open_http_depot(options).value();
  }

 private:
  const Nginx& nginx_;
  const NginxOptions wants_;
  TemporaryDirectory folder_;
};

DepotHarness on_nginx(const std::string& name, const NginxOptions& wants) {
  return {name, [name, wants] { return std::make_unique<NginxDepotSetup>(name, wants); }};
}

INSTANTIATE_TEST_SUITE_P(Http, DepotConformance,
                         testing::Values(on_nginx("plain", {}), on_nginx("tls_http2", {.tls = true, .http2 = true}),
                                         on_nginx("bearer", {.token = "a-token.of~tests"}),
                                         on_nginx("mutual_tls",
                                                  {.tls = true, .http2 = true, .client_certificate = true})),
                         [](const testing::TestParamInfo<DepotHarness>& tested) { return tested.param.name; });

}  // namespace
}  // namespace kiln::test
