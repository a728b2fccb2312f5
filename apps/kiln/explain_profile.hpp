#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bundle/profile.hpp"

namespace kiln::cli {

/// What bundles have for one thing that was asked for.
struct ProfileAnswer {
  Asked asked;
  std::string bundle;          ///< that serves it; empty where none does
  std::optional<Target> made;  ///< what for the artifact was made that serves it
  std::string text;            ///< how it is served, or what is lacking, in words
};

}  // namespace kiln::cli
