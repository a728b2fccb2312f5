// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The envelope around the serialized build result of the CCCL library (docs/internals/formats/small-files.md). The
/// library itself does not detect nine of ten changed bytes, so it only gets blobs that were decoded from an envelope.
struct CcclEnvelope {
  std::string spec;                  ///< canonical text
  std::string release;               ///< version of the library that created the blob, such as "1.2.1"
  std::string build_id;              ///< identifies the file of that library
  int capability = 0;                ///< 90 for sm_90
  std::vector<std::string> kernels;  ///< symbol names
  std::string_view blob;
};

std::string encode(const CcclEnvelope& envelope);
/// Returns Code::Corrupt if any bit differs from what was written, or if the version is unknown. `blob` points into
/// `bytes`.
Result<CcclEnvelope> decode_cccl_envelope(std::string_view bytes);

}  // namespace kiln
