// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "remote/http/http_object_store.hpp"
#include "support/servers/nginx.hpp"
#include "support/servers/test_ca.hpp"

namespace kiln::test {

/// Returns the options of a client that meets the requirements of a test's nginx, except for a token.
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

/// Returns this process's nginx with these options, without objects: starting one takes longer than most tests.
inline Nginx& shared_nginx(const std::string& name, const NginxOptions& wants) {
  static std::map<std::string, std::unique_ptr<Nginx>> all;
  std::unique_ptr<Nginx>& one = all[name];
  if (one == nullptr) one = std::make_unique<Nginx>(wants);
  one->clear();
  return *one;
}

}  // namespace kiln::test
