#pragma once

#include <map>
#include <memory>
#include <string>

#include "http/http_depot.hpp"
#include "support/nginx.hpp"
#include "support/test_ca.hpp"

namespace kiln::test {

/// How a client comes to all that an nginx of the tests may want of it, but for a token.
inline HttpOptions options_for(const Nginx& nginx, const NginxOptions& wants = {}) {
  HttpOptions options;
  options.url = nginx.url();
  if (wants.tls) options.ca_file = TestCa::shared().ca();
  if (wants.client_certificate) {
    options.client_cert = TestCa::shared().client_cert();
    options.client_key = TestCa::shared().client_key();
  }
  return options;
}

/// The one of this process that wants such, as if nobody had written to it: starting one takes longer than most tests.
inline Nginx& shared_nginx(const std::string& name, const NginxOptions& wants) {
  static std::map<std::string, std::unique_ptr<Nginx>> all;
  std::unique_ptr<Nginx>& one = all[name];
  if (one == nullptr) one = std::make_unique<Nginx>(wants);
  one->clear();
  return *one;
}

}  // namespace kiln::test
