#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// What is around the CCCL library's serialised build result, docs/cccl-format.md: the library itself notices nine of
/// ten changed bytes not at all, so nobody hands it a blob that did not come out of here.
struct CcclEnvelope {
  std::string spec;                  ///< canonical text
  std::string release;               ///< of the library that made the blob, such as "1.2.1"
  std::string build_id;              ///< and which file that was
  int capability = 0;                ///< 90 for sm_90
  std::vector<std::string> kernels;  ///< their symbols
  std::string_view blob;
};

std::string encode(const CcclEnvelope& envelope);
/// Code::Corrupt where any bit is not as it was written, or the version is not known. `blob` points into `bytes`.
Result<CcclEnvelope> decode_cccl_envelope(std::string_view bytes);

}  // namespace kiln
