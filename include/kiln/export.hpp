// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks the symbols that the shared library exports. All others are hidden.
#define KILN_API __attribute__((visibility("default")))
