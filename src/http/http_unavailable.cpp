#include "base/error.hpp"
#include "http/http_depot.hpp"

namespace kiln {

Result<std::unique_ptr<Depot>> open_http_depot(HttpOptions) {
  return failure(Code::Unsupported, "kiln was built without HTTP; build it where the headers of libcurl are installed");
}

}  // namespace kiln
