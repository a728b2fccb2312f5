// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend_factory.hpp"

namespace kiln::test {

/// Returns the toy backend. A backend of kiln is listed in backends/factory/backend_table.cpp; a test calls
/// `add_backend`.
const BackendFactory& toy_backend();

}  // namespace kiln::test
