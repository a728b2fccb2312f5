// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/source/structure.hpp"

// What the search for rails looks for. docs/reference/audit-rules.md has the same table. Private to the search.
namespace kiln::source {

/// What a hit is about. In the order of severity, which is the order of the audit's checks.
enum class Rail : unsigned char {
  HostRead,         ///< a copy from the device to the host
  Materialization,  ///< a whole table or array becomes a host object
  Synchronization,  ///< the host waits, or the null stream is used
  DeviceRangeLoop,  ///< a host loop whose number of iterations comes from the device
  AllocationInLoop,
  LaunchShape,  ///< a grid or block of constant size
};
inline constexpr std::size_t kRails = 6;
/// Returns the stable name: `host_read`.
const char* to_string(Rail rail);

/// The libraries that a source uses, as bits. A name such as `.get()` counts only in a source that uses a library in
/// which it has this meaning.
using Libraries = std::uint32_t;
enum Library : Libraries {
  kCupy = 1U << 0U,
  kTorch = 1U << 1U,
  kNumba = 1U << 2U,
  kPycuda = 1U << 3U,
  kCudf = 1U << 4U,  ///< and the other libraries of RAPIDS
  kJax = 1U << 5U,
  kTensorflow = 1U << 6U,
  kCudaPython = 1U << 7U,
  kTriton = 1U << 8U,
  kKiln = 1U << 9U,
  kRmm = 1U << 10U,
  kThrust = 1U << 11U,
  kWarp = 1U << 12U,
  kNumpy = 1U << 13U,
  kAnyGpu = kNumpy - 1U,
};

/// How a name must be used to be a hit.
enum class Form : unsigned char {
  Call,          ///< `name(…)`
  ToHost,        ///< `name(…)` with an argument that contains DeviceToHost
  Method,        ///< `x.name(…)`
  MethodNoArgs,  ///< `x.name()`
  ToCpu,         ///< `x.name(…)` with the CPU as an argument
  OnStream,      ///< `x.name(stream)`
  Member,        ///< `x.name`
  Mention,
};

struct Pattern {
  const char* name;
  Rail rail;
  Form form;
  Libraries libraries;  ///< at least one of which the source must use; 0 means no condition
};

/// Returns the pattern of a word, or null.
const Pattern* find_pattern(Language language, std::string_view word);
/// Returns whether the word at `at` is used as its pattern demands.
bool matches(const Structure& source, std::size_t at, const Pattern& pattern);

/// The libraries of a source and the names by which it refers to them.
struct Imports {
  Libraries libraries = 0;
  std::vector<std::pair<std::string_view, Libraries>> names;  ///< of modules: `cp`

  /// Returns the library that a name refers to; 0 if it is none.
  Libraries of(std::string_view name) const;
};
Imports imports_of(const Structure& source, std::string_view text);
/// Returns whether the text of a file can contain a hit at all. Fast.
bool may_have_rails(Language language, std::string_view text);

/// Returns the index of the first word of `a.b.name`, or `at` itself. Returns kNoToken if an expression precedes it.
std::size_t root_of(const Structure& source, std::size_t at);

}  // namespace kiln::source
