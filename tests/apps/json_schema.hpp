// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln::test {

/// Checks a document against a JSON schema and returns the place and kind of the first difference; empty if it is
/// valid. Supports the keywords that apps/kiln/schemas uses, and reports any other keyword.
std::string schema_problem(const nlohmann::json& schema, const nlohmann::json& document,
                           const std::string& place = "$");

/// Returns the path of the schema of a command line: apps/kiln/schemas/cache-ls.json; empty if there is none.
std::string schema_file(const std::vector<std::string>& arguments);

}  // namespace kiln::test
