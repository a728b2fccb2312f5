#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "apps/kiln/arguments.hpp"
#include "session/manifest.hpp"

namespace kiln::cli {

/// One file, or one algorithm of CCCL's, for one target.
struct Job {
  std::string file;  ///< an algorithm's name
  Unit unit;
  Target target;
};

/// What the unit options of compile and explain ask for, for every target: algorithms, what the manifest lists, files;
/// each in the order given.
Result<std::vector<Job>> jobs_of(const Arguments& arguments);
/// Likewise of a manifest that has been read; the one that the arguments name is not.
Result<std::vector<Job>> jobs_of(const Arguments& arguments, const Manifest& manifest);

/// The targets of `--arch`, each once; none where nobody gave any.
Result<std::vector<Target>> given_targets(const Arguments& arguments);

}  // namespace kiln::cli
