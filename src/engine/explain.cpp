// SPDX-License-Identifier: Apache-2.0
#include "engine/explain.hpp"

#include <algorithm>

#include "base/format.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// Reports the items that are in only one of two lists, or a change of order if the items are equal.
void compare_lists(const char* input, const std::vector<std::string>& then, const std::vector<std::string>& now,
                   std::vector<InputDifference>& out) {
  if (then == now) return;
  const std::size_t before = out.size();
  for (const std::string& text : then) {
    if (std::find(now.begin(), now.end(), text) == now.end()) out.push_back({input, text, text, ""});
  }
  for (const std::string& text : now) {
    if (std::find(then.begin(), then.end(), text) == then.end()) out.push_back({input, text, "", text});
  }
  if (out.size() == before) out.push_back({input, "order", join_strings(then, {}, " "), join_strings(now, {}, " ")});
}

void compare_digests(const char* input, const std::string& what, const Digest& then, const Digest& now,
                     std::vector<InputDifference>& out) {
  if (then != now) out.push_back({input, what, then.hex(), now.hex()});
}

void compare_headers(const Build& then, const Build& now, std::vector<InputDifference>& out) {
  const auto find = [](const Build& build, const std::string& name) -> const Digest* {
    for (const auto& [header, digest] : build.headers) {
      if (header == name) return &digest;
    }
    return nullptr;
  };
  for (const auto& [name, digest] : then.headers) {
    const Digest* other = find(now, name);
    if (other == nullptr || *other != digest) {
      out.push_back({"memory header", name, digest.hex(), other != nullptr ? other->hex() : ""});
    }
  }
  for (const auto& [name, digest] : now.headers) {
    if (find(then, name) == nullptr) out.push_back({"memory header", name, "", digest.hex()});
  }
}

void compare_compilers(const CompilerIdentity& then, const CompilerIdentity& now, std::vector<InputDifference>& out) {
  if (then.name != now.name || then.digest != now.digest) {
    const auto text = [](const CompilerIdentity& c) {
      return c.name + " " + c.version + " (" + c.digest.hex().substr(0, 12) + ", " + c.path + ")";
    };
    out.push_back({"compiler", now.name, text(then), text(now)});
  }
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const auto& [name, value] : then.environment) before.push_back(name + "=" + value);
  for (const auto& [name, value] : now.environment) after.push_back(name + "=" + value);
  compare_lists("environment", before, after, out);
}

// Compares everything that a request key covers.
std::vector<InputDifference> compare(const Build& then, const Build& now) {
  std::vector<InputDifference> out;
  compare_digests("source", "the unit's source", then.source, now.source, out);
  compare_digests("source", "the unit's preamble", then.preamble, now.preamble, out);
  compare_headers(then, now, out);
  compare_lists("option", then.options, now.options, out);
  compare_lists("entry", then.entries, now.entries, out);
  if (then.include_roots.size() != now.include_roots.size()) {
    compare_lists("include directory", then.include_roots, now.include_roots, out);
  }
  if (!(then.target == now.target)) out.push_back({"target", "architecture", then.target.name(), now.target.name()});
  compare_compilers(then.compiler, now.compiler, out);
  return out;
}

InputDifference difference_of(const Mismatch& mismatch) {
  InputDifference difference{"header", mismatch.path, "", ""};
  switch (mismatch.expected.state) {
    case DependencySet::State::Read:
    case DependencySet::State::Sentinel:
      difference.before = mismatch.expected.digest.hex();
      difference.after = mismatch.actual ? mismatch.actual->hex() : "missing";
      if (mismatch.actual && *mismatch.actual == mismatch.expected.digest) {
        difference.after = "same content with a different modification time, which the output contains";
      }
      break;
    case DependencySet::State::Absent:
      difference.before = "missing";
      difference.after = "present, and found before the file that was read";
      break;
    case DependencySet::State::Present:
      difference.before = "present";
      difference.after = "missing or changed";
      break;
  }
  if (mismatch.expected.name.empty()) difference = {"place", mismatch.description, "", ""};
  return difference;
}

// The request is equal, so a file differs. Compares with the newest dependency set, which is the nearest.
std::vector<InputDifference> compare_files(const Recipe& recipe, const Resolver::Params& params, Store& store,
                                           const RequestContext& context) {
  const auto dependency_sets = store.dependency_sets(recipe.request_key(), Store::kMaxDependencySets, context);
  if (!dependency_sets || dependency_sets->empty()) return {};
  std::vector<InputDifference> out;
  for (const Mismatch& mismatch : mismatches(dependency_sets->front(), recipe.path_roots(), *params.digests)) {
    out.push_back(difference_of(mismatch));
  }
  return out;
}

std::string summarize(const Explanation& explanation) {
  if (explanation.hit) return std::string("hit: found in the ") + to_string(explanation.artifact->origin) + " tier";
  if (!explanation.nearest) return "miss: no earlier build of this unit is recorded";
  if (explanation.differences.empty()) {
    return "miss: no recorded input changed since the last build; the entry was evicted, cleared or corrupt";
  }
  const InputDifference& first = explanation.differences.front();
  // "the unit's source" already names the input.
  const std::string input = first.input == "source" ? first.name : first.input + " " + first.name;
  std::string text = "miss: " + input + " changed since the nearest earlier build";
  if (explanation.differences.size() > 1) {
    text += " (and " + std::to_string(explanation.differences.size() - 1) + " more)";
  }
  return text;
}

Explanation::EarlierBuild earlier_build(const Build& build) {
  // The clock of some standard libraries counts microseconds.
  using Clock = std::chrono::system_clock;
  return {build.key, build.target, build.compiler.name + " " + build.compiler.version,
          Clock::time_point(std::chrono::duration_cast<Clock::duration>(build.built_at)), build.cost_ms};
}

}  // namespace

Explanation explain_miss(const Recipe& recipe, const Resolver::Params& params, const RequestContext& context) {
  Store* const store = params.store_for(recipe.unit);
  Explanation explanation;
  explanation.request = recipe.request_key();
  if (store == nullptr) {
    explanation.summary = "miss: caching is off";
    return explanation;
  }
  if (params.history != nullptr) {
    const Build now = Build::of(recipe, {}, 0, {});
    const auto builds = params.history->builds(recipe.unit.kind(), recipe.unit.name());
    for (std::size_t i = 0; builds && i < builds->size(); ++i) {
      const Build& then = (*builds)[i];
      auto differences = compare(then, now);
      if (then.request == explanation.request) differences = compare_files(recipe, params, *store, context);
      const bool nearer = !explanation.nearest || differences.size() < explanation.differences.size();
      // An equal request is always the nearest build: only files differ.
      if (nearer || then.request == explanation.request) {
        explanation.nearest = earlier_build(then);
        explanation.differences = std::move(differences);
      }
      if (then.request == explanation.request) break;
    }
  }
  explanation.summary = summarize(explanation);
  return explanation;
}

Explanation explain(const Recipe& recipe, const Resolver::Params& params, const RequestContext& context) {
  auto found = Resolver(params).find(recipe, context);
  if (!found || !*found) return explain_miss(recipe, params, context);
  Explanation explanation;
  explanation.request = recipe.request_key();
  explanation.hit = true;
  explanation.artifact = resolved_artifact(**std::move(found));
  explanation.summary = summarize(explanation);
  return explanation;
}

}  // namespace kiln
