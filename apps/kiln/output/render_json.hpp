// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/explanation.hpp>
#include <kiln/result.hpp>

#include "apps/kiln/cache/cache_set.hpp"
#include "apps/kiln/doctor/doctor_report.hpp"
#include "cache/disk_store.hpp"
#include "session/config/config.hpp"
#include "trust/keys.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::cli {

/// The outcome of compiling one file for one target.
struct CompileOutcome {
  std::string file;
  std::string target;
  Result<ResolvedArtifact> answer = Error{};
  std::string output;  ///< the file that was written, if any
};

struct ExplainOutcome {
  std::string file;
  std::string target;
  Explanation explanation;
};

struct CacheEntry {
  std::string cache;  ///< cache directory
  DiskStore::EntryInfo listed;
};

// The JSON of each command, as apps/kiln/schemas describes it. Fields are added, never renamed or removed.
std::string compile_json(const std::vector<CompileOutcome>& outcomes);
std::string explain_json(const std::vector<ExplainOutcome>& outcomes);
std::string stats_json(const std::vector<CacheResult<DiskStore::Stats>>& outcomes);
std::string collected_json(const std::vector<CacheResult<GcResult>>& outcomes);
std::string verified_json(const std::vector<CacheResult<DiskStore::VerifyResult>>& outcomes);
std::string entries_json(const std::vector<CacheEntry>& entries);
std::string entry_json(const CacheEntry& entry, const Artifact& artifact);
/// `text` is a calibration file.
std::string calibration_json(const std::string& path, const std::string& text);
/// `variables` are those of kiln-runtime.
std::string config_json(const Config& config, const std::vector<Setting>& variables);
std::string doctor_json(const DoctorReport& report);
std::string key_json(const PublicKey& key, const std::string& secret_file);
/// `last_day` is human-readable. `file` is the path of the written certificate, or empty.
std::string certificate_json(const Certificate& certificate, const std::string& last_day, const std::string& file);
std::string version_json();
std::string manual_json(const std::string& page);
std::string completions_json(const std::string& shell, const std::string& script);

}  // namespace kiln::cli
