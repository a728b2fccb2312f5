// SPDX-License-Identifier: Apache-2.0
#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "core/cccl_blob.hpp"
#include "core/cccl_compute_form.hpp"
#include "core/cccl_envelope.hpp"

namespace kiln::cccl {
namespace {

Result<CcclEnvelope> envelope_of(const Artifact& artifact) {
  if (artifact.target.form != Form::Cccl) {
    return make_error(Code::InvalidArgument, "the artifact of '" + artifact.metadata.unit + "' is of form " +
                                                 to_string(artifact.target.form) + ", not of a CCCL algorithm");
  }
  return decode_cccl_envelope(artifact.bytes.view());
}

}  // namespace

Result<ArtifactInfo> artifact_info(const Artifact& artifact) {
  auto envelope = envelope_of(artifact);
  if (!envelope) return std::move(envelope).error();
  const auto blob = read_cccl_blob(envelope->blob, envelope->kernels);
  if (!blob) return blob.error();
  if (blob->capability != envelope->capability) {
    return make_error(Code::Corrupt, "invalid CCCL artifact: its envelope and its blob name different capabilities");
  }
  return ArtifactInfo{std::move(envelope->spec), std::move(envelope->release), envelope->capability,
                      static_cast<std::size_t>(blob->policy_bytes), std::move(envelope->kernels)};
}

Result<Bytes> library_bytes(const Artifact& artifact) {
  const auto envelope = envelope_of(artifact);
  if (!envelope) return envelope.error();
  const auto offset = static_cast<std::size_t>(envelope->blob.data() - artifact.bytes.view().data());
  return artifact.bytes.slice(offset, envelope->blob.size());
}

Result<Bytes> cuda_compute_bytes(const std::vector<Artifact>& artifacts) {
  std::vector<CcclEnvelope> builds;
  for (const Artifact& artifact : artifacts) {
    auto envelope = envelope_of(artifact);
    if (!envelope) return std::move(envelope).error();
    builds.push_back(std::move(*envelope));
  }
  auto text = cuda_compute_form(builds);
  if (!text) return std::move(text).error();
  return Bytes::of(std::move(*text));
}

}  // namespace kiln::cccl
