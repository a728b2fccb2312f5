// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/audit/audit.hpp"

namespace kiln::audit {

/// A difference between two audits of one program.
struct Change {
  enum class Kind : unsigned char { Finding, Place, Launches, Waits, BytesIn, BytesOut, StageTime, Shape };
  enum class Direction : unsigned char { Improved, Regressed, Changed };
  Kind kind = Kind::Finding;
  Direction direction = Direction::Changed;
  std::string operation;  ///< empty for the whole trace
  std::string stage;
  const Rule* rule = nullptr;  ///< for a finding
  double before = 0;           ///< per run; 0 for a shape
  double after = 0;
  std::string text;  ///< what changed, with both values
};
const char* to_string(Change::Kind kind);
const char* to_string(Change::Direction direction);

/// The differences between the audits of two traces of one program. docs/reference/audit-rules.md has the limits below
/// which a difference is noise.
struct Comparison {
  std::vector<Change> changes;  ///< regressions first
  /// Operations with other numbers of rows. Their numbers are not compared, because they cannot be.
  std::vector<std::string> other_rows;
  /// Implicit operations with other numbers of launches, which did other work. Likewise.
  std::vector<std::string> other_launches;
  std::vector<std::string> only_before;  ///< operations
  std::vector<std::string> only_after;
  Verdict before = Verdict::Clean;
  Verdict after = Verdict::Clean;
  /// True if one of the traces lacks decisive evidence. Then only new findings are changes: numbers cannot be compared.
  bool lacks_evidence = false;

  /// Returns true if something regressed.
  bool regressed() const;
  /// Returns the worst finding that is new or more frequent; null if there is none.
  const Rule* worst_finding() const;
};

Comparison compare_audits(const Report& before, const Report& after);

}  // namespace kiln::audit
