// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "bundle/provenance.hpp"

namespace kiln::cli {

/// Returns the provenance that the command line gives, directly or with `ci` from the variables of a CI system; empty
/// if it gives none. Reads and checks a given file before anything is compiled.
Result<std::optional<ProvenanceSource>> given_provenance(const Arguments& arguments);

/// Returns the builder, source, commit and compilers of a bundle with provenance, and its signer.
std::string provenance_text(const VerifiedBundle& verified);

}  // namespace kiln::cli
