// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/report/model.hpp"

namespace kiln::report {

/// Returns the page as one self-contained file that needs no network: the model as JSON, and the script that draws it.
std::string page(const Model& model);

}  // namespace kiln::report
