// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "remote/object_store.hpp"

namespace kiln {

struct HttpOptions {
  std::string url;          ///< https://cache.example/kiln; a URL with a user or password is rejected
  std::string token_file;   ///< its first line is the bearer token; read again if the server rejects the token
  std::string ca_file;      ///< CA certificates to trust instead of the system's
  std::string client_cert;  ///< client certificate for mTLS
  std::string client_key;   ///< key of the client certificate
};

/// Opens an object store over HTTP, which uses GET, PUT and DELETE of `<url>/ac/<digest>` and `<url>/cas/<digest>`:
/// bazel-remote, nginx with WebDAV, or any server that stores objects by name. Connections are reused, HTTP/2 is used
/// if the server offers it, and redirects are not followed. The first request loads libcurl (it is not linked); if it
/// is missing, Code::Unavailable names the package to install. Returns Code::InvalidArgument for invalid options and
/// Code::Unsupported if kiln was built without HTTP.
Result<std::unique_ptr<ObjectStore>> open_http_object_store(HttpOptions options);

}  // namespace kiln
