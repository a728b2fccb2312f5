// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "remote/s3/s3_object_store.hpp"

namespace kiln {

Result<std::unique_ptr<ObjectStore>> open_s3_object_store(const S3Options&) {
  return make_error(Code::Unsupported, "kiln was built without S3 support; install the libcurl headers and rebuild");
}

}  // namespace kiln
