// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/audit/audit.hpp"
#include "analysis/source/source_tree.hpp"

namespace kiln::source {

/// The findings of a trace with the names by which their places in sources are found: their operation, and the kernels
/// of their evidence (the launches before and after a copy or a wait). Not thread-safe.
class TraceJoin {
 public:
  /// `report` must outlive this object.
  TraceJoin(const audit::Trace& trace, const audit::Report& report);

  const TraceNames& names() const { return names_; }
  /// Adds to each hit the findings at its place, and sorts the hits by rank. A hit is at the place of a finding if the
  /// rail is about the check of the finding's rule, and if its function names a kernel of the finding, declares the
  /// operation, or is named in the declaration of the operation.
  void apply(SourceReport& to) const;

 private:
  struct Names {
    std::vector<std::uint32_t> kernels;  // sorted
    std::uint32_t operation = UINT32_MAX;
  };
  std::string reason(const Hit& hit, const Names& names, const SourceReport& in) const;

  const audit::Report& report_;
  TraceNames names_;
  std::vector<Names> findings_;  // by index
};

}  // namespace kiln::source
