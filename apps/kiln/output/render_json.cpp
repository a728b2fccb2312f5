#include "apps/kiln/output/render_json.hpp"

#include <kiln/version.hpp>

#include "apps/kiln/linked_libraries.hpp"
#include "apps/kiln/output/json_common.hpp"

namespace kiln::cli {
namespace {

double seconds(std::chrono::nanoseconds moment) { return std::chrono::duration<double>(moment).count(); }

Json listed_object(const CacheEntry& entry) {
  const DiskStore::EntryInfo& listed = entry.listed;
  return {{"key", listed.key.hex()},
          {"cache", entry.cache},
          {"unit", listed.unit},
          {"target", listed.target.name()},
          {"form", to_string(listed.target.form)},
          {"compiler", listed.compiler},
          {"bytes", listed.payload},
          {"file_bytes", listed.bytes},
          {"cost_ms", rounded(listed.cost_ms)},
          {"last_used", seconds(listed.last_used)}};
}

Json nearest_object(const Build& build) {
  return {{"key", build.key.hex()},
          {"target", build.target.name()},
          {"compiler", build.compiler.name + " " + build.compiler.version},
          {"built_at", seconds(build.built_at)},
          {"cost_ms", rounded(build.cost_ms)}};
}

const char* name_of(CachedFile::Kind kind) {
  switch (kind) {
    case CachedFile::Kind::Entry: return "entries";
    case CachedFile::Kind::Hint: return "hints";
    case CachedFile::Kind::History: return "history";
    case CachedFile::Kind::Temporary: return "temporary";
    case CachedFile::Kind::OtherVersion: return "other_versions";
    case CachedFile::Kind::Internal: return "metadata";
  }
  return "unknown";
}

// {"caches": [{"root", "writable", …} or {"root", "writable", "error"}]}
template <class T, class Fill>
std::string caches_json(const std::vector<CacheResult<T>>& outcomes, Fill fill) {
  Json caches = Json::array();
  for (const auto& outcome : outcomes) {
    Json cache{{"root", outcome.root}, {"writable", outcome.writable}};
    if (outcome.result) {
      fill(cache, *outcome.result);
    } else {
      cache["error"] = error_object(outcome.result.error());
    }
    caches.push_back(std::move(cache));
  }
  return text_of({{"caches", std::move(caches)}});
}

}  // namespace

std::string compile_json(const std::vector<CompileOutcome>& outcomes) { return text_of(outcomes_object(outcomes)); }

std::string explain_json(const std::vector<ExplainOutcome>& outcomes) {
  Json results = Json::array();
  for (const ExplainOutcome& outcome : outcomes) {
    const Explanation& explanation = outcome.explanation;
    Json result{{"file", outcome.file},
                {"target", outcome.target},
                {"hit", explanation.hit},
                {"request", explanation.request.hex()}};
    if (explanation.answer) {
      result["key"] = explanation.answer->key.hex();
      result["origin"] = to_string(explanation.answer->origin);
      result["bytes"] = explanation.answer->artifact.bytes.size();
    }
    result["summary"] = explanation.summary;
    result["differences"] = Json::array();
    for (const Difference& difference : explanation.differences) {
      result["differences"].push_back({{"input", difference.input},
                                       {"name", difference.name},
                                       {"before", difference.before},
                                       {"after", difference.after}});
    }
    result["nearest"] = explanation.nearest ? nearest_object(*explanation.nearest) : Json();
    results.push_back(std::move(result));
  }
  return text_of({{"results", std::move(results)}});
}

std::string stats_json(const std::vector<CacheResult<DiskStore::Stats>>& outcomes) {
  return caches_json(outcomes, [](Json& cache, const DiskStore::Stats& stats) {
    cache["entries"] = stats.entries;
    cache["bytes"] = stats.bytes;
    cache["max_bytes"] = stats.max_bytes;
    cache["oldest_use"] = stats.entries > 0 ? Json(seconds(stats.oldest)) : Json();
    cache["newest_use"] = stats.entries > 0 ? Json(seconds(stats.newest)) : Json();
    cache["bytes_by_kind"] = Json::object();
    for (const auto& [kind, bytes] : stats.by_kind) cache["bytes_by_kind"][name_of(kind)] = bytes;
  });
}

std::string collected_json(const std::vector<CacheResult<GcResult>>& outcomes) {
  return caches_json(outcomes, [](Json& cache, const GcResult& collected) {
    cache["busy"] = collected.busy;
    cache["files"] = collected.files;
    cache["bytes"] = collected.bytes;
    cache["removed_files"] = collected.removed_files;
    cache["removed_bytes"] = collected.removed_bytes;
  });
}

std::string verified_json(const std::vector<CacheResult<DiskStore::VerifyResult>>& outcomes) {
  return caches_json(outcomes, [](Json& cache, const DiskStore::VerifyResult& verified) {
    cache["valid"] = verified.valid;
    cache["corrupt"] = verified.corrupt;
  });
}

std::string entries_json(const std::vector<CacheEntry>& entries) {
  Json list = Json::array();
  for (const CacheEntry& entry : entries) list.push_back(listed_object(entry));
  return text_of({{"entries", std::move(list)}});
}

std::string entry_json(const CacheEntry& entry, const Artifact& artifact) {
  Json out = listed_object(entry);
  out["entries"] = entries_object(artifact.entries);
  out["log"] = artifact.metadata.log;
  return text_of(out);
}

std::string calibration_json(const std::string& path, const std::string& text) {
  return text_of({{"file", path}, {"calibration", Json::parse(text, nullptr, false)}});
}

std::string config_json(const Config& config) {
  Json settings = Json::array();
  for (const Setting& setting : config.settings) {
    settings.push_back(
        {{"name", setting.name}, {"value", setting.value}, {"origin", setting.origin}, {"locked", setting.locked}});
  }
  return text_of({{"settings", std::move(settings)}});
}

std::string doctor_json(const DoctorReport& report) {
  static constexpr const char* kStates[] = {"ok", "info", "problem"};
  Json findings = Json::array();
  for (const DoctorCheck& finding : report.findings) {
    Json out{{"check", finding.check},
             {"state", kStates[static_cast<int>(finding.state)]},
             {"text", finding.text},
             {"advice", finding.advice}};
    // The first row of a table contains the field names of the other rows.
    Json details = Json::array();
    for (std::size_t row = 1; row < finding.details.size(); ++row) {
      Json detail = Json::object();
      for (std::size_t column = 0; column < finding.details[row].size(); ++column) {
        detail[finding.details[0].at(column)] = finding.details[row][column];
      }
      details.push_back(std::move(detail));
    }
    if (!details.empty()) out["details"] = std::move(details);
    findings.push_back(std::move(out));
  }
  return text_of({{"usable", report.usable}, {"findings", std::move(findings)}});
}

std::string key_json(const PublicKey& key, const std::string& secret_file) {
  Json object{{"public", key.text()}, {"id", key.id().hex()}};
  if (!secret_file.empty()) object["secret_file"] = secret_file;
  return text_of(object);
}

std::string certificate_json(const Certificate& certificate, const std::string& last_day, const std::string& file) {
  Json object{{"public", certificate.host.text()},
              {"id", certificate.host.id().hex()},
              {"namespace", certificate.name_space},
              {"last_day", last_day},
              {"authority", certificate.signature.key.hex()}};
  if (!file.empty()) object["certificate_file"] = file;
  return text_of(object);
}

std::string version_json() {
  Json libraries = Json::object();
  for (const LinkedLibrary& library : linked_libraries()) libraries[library.name] = library.version;
  return text_of({{"version", version()}, {"libraries", std::move(libraries)}});
}

std::string completions_json(const std::string& shell, const std::string& script) {
  return text_of({{"shell", shell}, {"script", script}});
}

}  // namespace kiln::cli
