#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "apps/kiln/arguments.hpp"

namespace kiln::cli {

/// One file for one target.
struct Job {
  std::string file;
  Unit unit;
  Target target;
};

/// What the unit options of compile and explain ask for: every file for every target, in the order given.
Result<std::vector<Job>> jobs_of(const Arguments& arguments);

/// Whether a source includes anything by a quoted name, which compilers look for beside the source first.
bool has_quoted_include(std::string_view source);

}  // namespace kiln::cli
