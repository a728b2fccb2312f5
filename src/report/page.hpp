#pragma once

#include <string>

#include "report/html.hpp"
#include "report/model.hpp"

namespace kiln::report {

/// The page: one file that needs no other, and no network. It can be read without scripts; they only add details.
std::string page(const Model& model);

// Its sections, in the order in which they stand; in page_runs.cpp …
void put_programs(Html& to, const Model& model);   ///< runs side by side, and what each first call waited for
void put_timelines(Html& to, const Model& model);  ///< in page_timeline.cpp
void put_units(Html& to, const Model& model);
// … and in page_tables.cpp.
void put_waits(Html& to, const Model& model);
void put_tiers(Html& to, const Model& model);
void put_misses(Html& to, const Model& model);
void put_audit(Html& to, const Model& model);
void put_troubles(Html& to, const Model& model);
void put_traces(Html& to, const Model& model);

/// `spatial, cold`
std::string name_of(const Run& run);
void put_label(Html& to, const Run& run);
/// Says that a list is longer than what is shown of it.
void put_more(Html& to, std::size_t shown, std::size_t all, const char* what);
/// The colour of a step, by the name of a mark.
const char* colour_of(Step::Kind kind);

}  // namespace kiln::report
