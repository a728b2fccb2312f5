#pragma once

#include <optional>
#include <span>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/target.hpp>

#include "bundle/bundle_format.hpp"
#include "core/closure.hpp"

namespace kiln {

/// One artifact of a bundle as its index sees it. A value.
struct IndexEntry {
  UnitKey unit;
  Target target;
  Key key;
  RequestKey request;
  BlobPlace artifact;
  std::optional<BlobPlace> closure;
};

/// The rows of artifacts that come in a bundle's order, as its pages have them: the writer makes them so, and who
/// verifies expects them so. Of several for one unit and target the first gets the unit's row.
std::vector<BundleRow> index_rows(std::span<const IndexEntry> entries);

/// Whether a closure says anything on another machine.
bool travels(const Closure& closure);

}  // namespace kiln
