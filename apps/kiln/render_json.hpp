#pragma once

#include <string>
#include <vector>

#include "apps/kiln/caches.hpp"
#include "apps/kiln/doctor_report.hpp"
#include "session/config.hpp"
#include "store/disk_store.hpp"
#include "trust/keys.hpp"
#include "trust/signed_statement.hpp"
#include "warm/explain.hpp"
#include "warm/resolver.hpp"

namespace kiln::cli {

/// What became of one file for one target.
struct CompileOutcome {
  std::string file;
  std::string target;
  Result<Answer> answer = Error{};
  std::string output;  ///< the file that was written, if any
};

struct ExplainOutcome {
  std::string file;
  std::string target;
  Explanation explanation;
};

struct CacheEntry {
  std::string cache;  ///< the folder
  DiskStore::Listed listed;
};

// The JSON of each command, as docs/cli.md describes it. Fields are added, never renamed or removed.
std::string compile_json(const std::vector<CompileOutcome>& outcomes);
std::string explain_json(const std::vector<ExplainOutcome>& outcomes);
std::string stats_json(const std::vector<CacheOutcome<DiskStore::Stats>>& outcomes);
std::string collected_json(const std::vector<CacheOutcome<Collected>>& outcomes);
std::string verified_json(const std::vector<CacheOutcome<DiskStore::Verified>>& outcomes);
std::string entries_json(const std::vector<CacheEntry>& entries);
std::string entry_json(const CacheEntry& entry, const Artifact& artifact);
/// Of the text of a calibration.
std::string calibration_json(const std::string& path, const std::string& text);
std::string config_json(const Config& config);
std::string doctor_json(const DoctorReport& report);
std::string key_json(const PublicKey& key, const std::string& secret_file);
/// `last_day` as people write it; `file` is where it was written to, or empty.
std::string certificate_json(const Certificate& certificate, const std::string& last_day, const std::string& file);
std::string version_json();
std::string completions_json(const std::string& shell, const std::string& script);

}  // namespace kiln::cli
