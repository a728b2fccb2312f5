// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "analysis/source/rail_scan.hpp"

namespace kiln {
class Clock;
}

namespace kiln::source {

/// The limits of a search. A search that reaches one of the last three ends and says so.
struct SearchLimits {
  std::size_t max_file_bytes = std::size_t{2} << 20U;  ///< larger files are skipped
  std::size_t max_depth = 64;                          ///< of directories; deeper ones are skipped
  std::size_t max_hits = 10'000;                       ///< lower-ranked hits are dropped and counted
  std::size_t max_files = 200'000;
  std::size_t max_entries = 2'000'000;  ///< of directories
  std::chrono::seconds max_time{300};
};

/// The result of a search in a directory.
struct SourceReport {
  std::string directory;
  std::vector<Hit> hits;         ///< in the order of `ranks_before`
  std::uint64_t files = 0;       ///< that were searched
  std::uint64_t suppressed = 0;  ///< hits on lines with `kiln-audit: ignore`
  std::uint64_t dropped = 0;     ///< hits beyond the limit
  std::uint64_t links = 0;       ///< symbolic links, which are not followed
  std::uint64_t binary = 0;      ///< files with the name of a source that contain a zero byte
  std::uint64_t too_large = 0;   ///< files
  std::uint64_t unreadable = 0;  ///< files and directories that are too deep or could not be opened
  std::uint64_t ignored = 0;     ///< directories such as .git and build
  std::string stopped;           ///< limit that ended the search; empty if it is complete
  std::vector<std::pair<std::uint32_t, std::string>> implementations;  ///< as in FileScan
};

/// Returns the language of a file by its name, or nothing if it is not searched.
std::optional<Language> language_of(std::string_view name);
/// Returns whether directories of this name are not searched.
bool is_ignored_directory(std::string_view name);

/// Returns whether a hit ranks before another: first those with findings, then by loops, rail, file and line.
bool ranks_before(const Hit& one, const Hit& other);

/// Searches all sources below a directory. Follows no symbolic link below it and opens regular files only, so that any
/// directory can be searched. Returns an error only if the directory itself cannot be opened.
Result<SourceReport> search_directory(const std::string& directory, const TraceNames& names, const SearchLimits& limits,
                                      const Clock& clock);

}  // namespace kiln::source
