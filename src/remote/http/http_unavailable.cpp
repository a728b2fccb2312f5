// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "remote/http/http_object_store.hpp"

namespace kiln {

Result<std::unique_ptr<ObjectStore>> open_http_object_store(HttpOptions) {
  return make_error(Code::Unsupported, "kiln was built without HTTP support; install the libcurl headers and rebuild");
}

}  // namespace kiln
