#pragma once

#include <string>

#include "analysis/report/html.hpp"
#include "analysis/report/model.hpp"

namespace kiln::report {

/// Returns the page as one self-contained file that needs no network. It is readable without scripts.
std::string page(const Model& model);

// The sections of the page, in order. In page_runs.cpp:
void put_programs(Html& to, const Model& model);   ///< runs side by side and their first calls
void put_timelines(Html& to, const Model& model);  ///< in page_timeline.cpp
void put_units(Html& to, const Model& model);
// In page_tables.cpp:
void put_waits(Html& to, const Model& model);
void put_tiers(Html& to, const Model& model);
void put_misses(Html& to, const Model& model);
void put_audit(Html& to, const Model& model);
void put_problems(Html& to, const Model& model);
void put_traces(Html& to, const Model& model);

/// `spatial, cold`
std::string name_of(const Run& run);
void put_label(Html& to, const Run& run);
/// Writes a note if a list is longer than its shown part.
void put_more(Html& to, std::size_t shown, std::size_t all, const char* what);
/// Returns the color class of a phase.
const char* color_of(Phase::Kind kind);

}  // namespace kiln::report
