// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/rule.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "session/config/member_reader.hpp"

namespace kiln::jit {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxRules = 1000;

constexpr Format kTables = {.valid = "a list of tables: [[rule]]"};
constexpr Format kKindFormat = {
    .form = Format::Form::Choice, .valid = "'folder' or 'file'", .words = {"folder", "file"}};
constexpr Format kEvidence = {.form = Format::Form::Choice, .valid = "'run' or 'source'", .words = {"run", "source"}};
constexpr Format kFlag = {.valid = "true or false"};

bool is_name(const std::string& text, std::string_view more) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [&](char each) {
    return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') || more.find(each) != std::string_view::npos;
  });
}

bool is_variable(const std::string& text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char each) {
           return (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') || each == '_';
         });
}

/// Reads the tables of a file of rules.
class RuleReader : private TableReader {
 public:
  Result<std::vector<Rule>> read_rules(const TomlValue& file);

 private:
  void rule(const TomlValue& table);
  void patterns(const TomlValue& table, const char* member, const std::vector<std::string>& texts,
                std::vector<PathPattern>& to);
  void check(const TomlValue& table, const Rule& rule);

  std::vector<Rule> rules_;
};

void RuleReader::patterns(const TomlValue& table, const char* member, const std::vector<std::string>& texts,
                          std::vector<PathPattern>& to) {
  for (const std::string& text : texts) {
    auto pattern = PathPattern::parse(text);
    if (!pattern) return fail(*table.find(member), std::string(member) + ": " + pattern.error().message);
    to.push_back(std::move(*pattern));
  }
}

void RuleReader::check(const TomlValue& table, const Rule& rule) {
  const auto at = [&](const char* member) -> const TomlValue& {
    const TomlValue* const found = table.find(member);
    return found != nullptr ? *found : table;
  };
  if (!is_name(rule.system, "_")) fail(at("system"), "system: use lower-case letters, digits and _");
  for (const std::string& each : rule.distributions) {
    if (!is_name(each, "-_.")) fail(at("distributions"), "distributions: '" + each + "' is not a name in lower case");
  }
  if (rule.distributions.empty() || rule.distributions.size() > 32)
    fail(at("distributions"), "distributions: name 1 to 32 distributions, the one of the system first");
  if (!is_variable(rule.variable)) fail(at("variable"), "variable: use capital letters, digits and _");
  if (!rule.subdirectory.empty() && (!is_safe_path(rule.subdirectory) || rule.variable.empty()))
    fail(at("subdirectory"), "subdirectory: use a relative path below the value of the variable");
  if (!rule.root.starts_with("~/") || !is_safe_path(std::string_view(rule.root).substr(2)))
    fail(at("root"), "root: use a path below the home directory, such as ~/.cache/name");
  if (rule.entries.empty()) fail(at("entries"), "entries: name at least one pattern");
  if (rule.kind == Rule::Kind::File && !rule.whole.empty())
    fail(at("whole"), "whole: a rule of kind 'file' has no such member");
  for (const Rule& other : rules_) {
    if (other.system == rule.system && !rule.distributions.empty() &&
        other.distributions.front() == rule.distributions.front() && other.versions.text() == rule.versions.text())
      fail(at("versions"), "two rules of '" + rule.system + "' have the same versions");
  }
}

void RuleReader::rule(const TomlValue& table) {
  if (table.kind != TomlValue::Kind::Table) return fail(table, "a rule is a table: [[rule]]");
  Rule rule;
  std::string versions;
  std::string kind;
  std::string evidence;
  std::vector<std::string> entries, whole, never, rewrite;
  read(table, {{"system", &rule.system, kTextFormat, "add the name of the system"},
               {"versions", &versions, kTextFormat, "add the versions to which the rule applies"},
               {"distributions", &rule.distributions, kTextListFormat, "add the distribution of the system"},
               {"variable", &rule.variable, kTextFormat},
               {"subdirectory", &rule.subdirectory, kTextFormat},
               {"root", &rule.root, kTextFormat, "add the default path of the cache"},
               {"kind", &kind, kKindFormat},
               {"entries", &entries, kTextListFormat, "add the patterns of entries"},
               {"whole", &whole, kTextListFormat},
               {"never", &never, kTextListFormat},
               {"rewrite", &rewrite, kTextListFormat},
               {"host_code", &rule.host_code, kFlag},
               {"evidence", &evidence, kEvidence, "add 'run' or 'source'"}});
  if (error()) return;
  auto range = VersionRange::parse(versions);
  if (!range) return fail(*table.find("versions"), range.error().message);
  rule.versions = std::move(*range);
  rule.kind = kind == "file" ? Rule::Kind::File : Rule::Kind::Folder;
  rule.evidence = evidence == "source" ? Rule::Evidence::Source : Rule::Evidence::Run;
  patterns(table, "entries", entries, rule.entries);
  patterns(table, "whole", whole, rule.whole);
  patterns(table, "never", never, rule.never);
  patterns(table, "rewrite", rewrite, rule.rewrite);
  check(table, rule);
  rules_.push_back(std::move(rule));
  if (rules_.size() > kMaxRules) fail(table, "there are more than 1000 rules");
}

Result<std::vector<Rule>> RuleReader::read_rules(const TomlValue& file) {
  std::vector<const TomlValue*> tables;
  read(file, {{"rule", &tables, kTables, "add a [[rule]] table"}});
  for (const TomlValue* table : tables) {
    if (!error()) rule(*table);
  }
  if (error()) return *error();
  return std::move(rules_);
}

}  // namespace

bool any_matches(const std::vector<PathPattern>& patterns, std::string_view path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const PathPattern& each) { return each.matches_file(path); });
}

bool Rule::is_entry(std::string_view path) const {
  return std::any_of(entries.begin(), entries.end(), [&](const PathPattern& each) { return each.matches(path); });
}

bool Rule::must_contain_root(std::string_view path) const {
  return any_matches(rewrite, path) && any_matches(whole, path);
}

std::string Rule::root_for(const std::string& value, const std::string& home) const {
  if (value.empty()) return join_path(home, root.substr(2));
  return subdirectory.empty() ? normalize_path(value) : join_path(normalize_path(value), subdirectory);
}

Result<std::vector<Rule>> parse_rules(std::string_view text, const std::string& name) {
  const auto named = [&](const Error& error) { return make_error(error.code, name + ":" + error.message); };
  if (text.size() > kMaxFileBytes) return make_error(Code::InvalidArgument, name + ": larger than 1 MiB");
  const auto tree = parse_toml(text);
  if (!tree) return named(tree.error());
  auto rules = RuleReader().read_rules(*tree);
  if (!rules) return named(rules.error());
  return rules;
}

}  // namespace kiln::jit
