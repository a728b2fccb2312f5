#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "remote/depot.hpp"

namespace kiln {

struct HttpOptions {
  std::string url;          ///< https://cache.example/kiln; a user or password in it is refused: they belong into files
  std::string token_file;   ///< its first line is sent as a bearer token; read anew when the server refuses the old one
  std::string ca_file;      ///< whose servers are believed, instead of the system's
  std::string client_cert;  ///< for servers that want to know who asks (mTLS), with …
  std::string client_key;   ///< … its key
};

/// A depot behind HTTP, by GET, PUT and DELETE of `<url>/ac/<digest>` and `<url>/cas/<digest>`: bazel-remote, nginx
/// with WebDAV, anything that keeps bodies under names. Connections are reused, HTTP/2 is taken where it is offered,
/// and redirects are not followed. Opens nothing: libcurl is opened (at run time, it is not linked) by the first call,
/// and Code::Unavailable says what to install where there is none. Code::InvalidArgument for options that make no
/// sense, Code::Unsupported where kiln was built without it.
Result<std::unique_ptr<Depot>> open_http_depot(HttpOptions options);

}  // namespace kiln
