// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/render_json.hpp"

#include <kiln/version.hpp>

#include "apps/kiln/linked_libraries.hpp"
#include "apps/kiln/output/json_common.hpp"

namespace kiln::cli {

static Json to_json(const CacheEntry& entry) {
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

static Json to_json(const Explanation::EarlierBuild& build) {
  return {{"key", build.key.hex()},
          {"target", build.target.name()},
          {"compiler", build.compiler},
          {"built_at", seconds(build.built_at.time_since_epoch())},
          {"cost_ms", rounded(build.cost_ms)}};
}

static Json to_json(const InputDifference& difference) {
  return {{"input", difference.input},
          {"name", difference.name},
          {"before", difference.before},
          {"after", difference.after}};
}

static Json to_json(const ExplainOutcome& outcome) {
  const Explanation& explanation = outcome.explanation;
  Json result{{"file", outcome.file},
              {"target", outcome.target},
              {"hit", explanation.hit},
              {"request", explanation.request.hex()}};
  if (explanation.artifact) {
    result["key"] = explanation.artifact->key.hex();
    result["origin"] = to_string(explanation.artifact->origin);
    result["bytes"] = explanation.artifact->artifact.bytes.size();
  }
  result["summary"] = explanation.summary;
  result["differences"] = Json::array();
  for (const InputDifference& difference : explanation.differences) {
    result["differences"].push_back(to_json(difference));
  }
  result["nearest"] = explanation.nearest ? to_json(*explanation.nearest) : Json();
  return result;
}

static const char* name_of(CachedFile::Kind kind) {
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

static Json to_json(const Activity& activity) {
  return {{"day", day_text(activity.day)},
          {"program", activity.program},
          {"hits", {{"bundle", activity.bundle}, {"disk", activity.disk}, {"remote", activity.remote}}},
          {"compiled", activity.compiled},
          {"failed", activity.failed},
          {"saved_ms", activity.saved_ms}};
}

static Json to_json(const DiskStore::Stats& stats) {
  Json object{{"entries", stats.entries},
              {"bytes", stats.bytes},
              {"max_bytes", stats.max_bytes},
              {"oldest_use", stats.entries > 0 ? Json(seconds(stats.oldest)) : Json()},
              {"newest_use", stats.entries > 0 ? Json(seconds(stats.newest)) : Json()},
              {"bytes_by_kind", Json::object()}};
  for (const auto& [kind, bytes] : stats.by_kind) object["bytes_by_kind"][name_of(kind)] = bytes;
  object["activity"] = Json::array();
  for (const Activity& each : stats.activity) object["activity"].push_back(to_json(each));
  return object;
}

static Json to_json(const GcResult& collected) {
  return {{"busy", collected.busy},
          {"files", collected.files},
          {"bytes", collected.bytes},
          {"removed_files", collected.removed_files},
          {"removed_bytes", collected.removed_bytes}};
}

static Json to_json(const DiskStore::VerifyResult& verified) {
  return {{"valid", verified.valid}, {"corrupt", verified.corrupt}};
}

template <class T>
static Json to_json(const CacheResult<T>& outcome) {
  Json cache{{"root", outcome.root}, {"writable", outcome.writable}};
  if (outcome.result) {
    cache.update(to_json(*outcome.result));
  } else {
    cache["error"] = to_json(outcome.result.error());
  }
  return cache;
}

static Json to_json(const Setting& setting) {
  return {{"name", setting.name}, {"value", setting.value}, {"origin", setting.origin}, {"locked", setting.locked}};
}

static Json to_json(const DoctorCheck& finding) {
  static constexpr const char* kStates[] = {"ok", "info", "problem"};
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
  return out;
}

static Json to_json(const PublicKey& key) { return {{"public", key.text()}, {"id", key.id().hex()}}; }

std::string compile_json(const std::vector<CompileOutcome>& outcomes) { return text_of(to_json(outcomes)); }

std::string explain_json(const std::vector<ExplainOutcome>& outcomes) {
  return text_of({{"results", json_array(outcomes)}});
}

std::string stats_json(const std::vector<CacheResult<DiskStore::Stats>>& outcomes) {
  return text_of({{"caches", json_array(outcomes)}});
}

std::string collected_json(const std::vector<CacheResult<GcResult>>& outcomes) {
  return text_of({{"caches", json_array(outcomes)}});
}

std::string verified_json(const std::vector<CacheResult<DiskStore::VerifyResult>>& outcomes) {
  return text_of({{"caches", json_array(outcomes)}});
}

std::string entries_json(const std::vector<CacheEntry>& entries) { return text_of({{"entries", json_array(entries)}}); }

std::string entry_json(const CacheEntry& entry, const Artifact& artifact) {
  Json out = to_json(entry);
  out["entries"] = to_json(artifact.entries);
  if (const auto info = cccl::artifact_info(artifact)) out["cccl"] = to_json(*info);
  out["log"] = artifact.metadata.log;
  return text_of(out);
}

std::string calibration_json(const std::string& path, const std::string& text) {
  return text_of({{"file", path}, {"calibration", Json::parse(text, nullptr, false)}});
}

std::string config_json(const Config& config, const std::vector<Setting>& variables) {
  const auto array_of = [](const std::vector<Setting>& settings) {
    Json array = Json::array();
    for (const Setting& setting : settings) array.push_back(to_json(setting));
    return array;
  };
  return text_of({{"settings", array_of(config.settings)}, {"variables", array_of(variables)}});
}

std::string doctor_json(const DoctorReport& report) {
  return text_of({{"usable", report.usable()}, {"findings", json_array(report.findings)}});
}

std::string key_json(const PublicKey& key, const std::string& secret_file) {
  Json object = to_json(key);
  if (!secret_file.empty()) object["secret_file"] = secret_file;
  return text_of(object);
}

std::string certificate_json(const Certificate& certificate, const std::string& last_day, const std::string& file) {
  Json object = to_json(certificate.host);
  object["namespace"] = certificate.name_space;
  object["last_day"] = last_day;
  object["authority"] = certificate.signature.key.hex();
  if (!file.empty()) object["certificate_file"] = file;
  return text_of(object);
}

std::string version_json() {
  Json libraries = Json::object();
  for (const LinkedLibrary& library : linked_libraries()) libraries[library.name] = library.version;
  return text_of({{"version", version()}, {"libraries", std::move(libraries)}});
}

std::string manual_json(const std::string& page) { return text_of({{"page", page}}); }

std::string completions_json(const std::string& shell, const std::string& script) {
  return text_of({{"shell", shell}, {"script", script}});
}

}  // namespace kiln::cli
