// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

namespace kiln {

/// A variable of kiln-runtime. kiln-runtime takes the valid values of its warnings from this table, a session the names
/// that it does not report as unknown, and a test the rows of docs/reference/configuration.md: a variable is added in
/// one place.
struct RuntimeVariable {
  const char* name;
  const char* default_value;
  const char* valid;    ///< describes the valid values in messages
  const char* meaning;  ///< one-line help text
};

inline constexpr RuntimeVariable kRuntimeVariables[] = {
    {"KILN_EXECUTION_MODE", "auto", "auto, cpu or gpu", "Where operations run."},
    {"KILN_REWRITES", "on", kBooleanValues, "Replace operations by cheaper ones with the same result."},
    {"KILN_DETERMINISTIC", "off", kBooleanValues, "Use only variants that give equal bytes for equal inputs."},
    {"KILN_ALLOW_CPU_DEVICE", "off", kBooleanValues,
     "Let the modes gpu and auto use an OpenCL device that is a CPU, such as PoCL's."},
    {"KILN_PRECISION", "auto", "auto or fp64",
     "fp64 uses only variants that compute in double precision; auto follows the operation and the device."},
    {"KILN_TIME_STAGES", "off", kBooleanValues,
     "Wait at the end of each stage, so that a trace shows the duration of each."},
    {"KILN_MEMORY_TIER", "pool", "pool, retrying_pool, managed or plain", "Source of CUDA memory."},
    {"KILN_MEMORY_LIMIT", "none", "none, 0 (the same) or a size such as 20G or 512M",
     "Size limit of the pool of each device; managed and plain memory ignore it."},
    {"KILN_OOM_RETRIES", "3", "a number from 0 to 3",
     "How often an allocation from a retrying pool is repeated after the program freed memory."},
    {"KILN_CALIBRATION", "the user's", "a path", "File that `kiln calibrate` wrote."},
    {"KILN_CALIBRATE", "none", "a path", "File to which a program writes its measurements; `kiln calibrate` sets it."},
    {"KILN_CALIBRATE_QUICK", "off", kBooleanValues,
     "Measure with fewer sizes and less time; `kiln calibrate` sets it."},
};

}  // namespace kiln
