#include "warm/explain.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/words.hpp"

namespace kiln {
namespace {

// What is in one list and not in the other; where only the order differs, that.
void compare_lists(const char* input, const std::vector<std::string>& then, const std::vector<std::string>& now,
                   std::vector<Difference>& out) {
  if (then == now) return;
  const std::size_t before = out.size();
  for (const std::string& text : then) {
    if (std::find(now.begin(), now.end(), text) == now.end()) out.push_back({input, text, text, ""});
  }
  for (const std::string& text : now) {
    if (std::find(then.begin(), then.end(), text) == then.end()) out.push_back({input, text, "", text});
  }
  if (out.size() == before) out.push_back({input, "order", joined(then, {}, " "), joined(now, {}, " ")});
}

void compare_digests(const char* input, const std::string& what, const Digest& then, const Digest& now,
                     std::vector<Difference>& out) {
  if (then != now) out.push_back({input, what, then.hex(), now.hex()});
}

void compare_headers(const Build& then, const Build& now, std::vector<Difference>& out) {
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

void compare_compilers(const CompilerIdentity& then, const CompilerIdentity& now, std::vector<Difference>& out) {
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

// All that a request key covers.
std::vector<Difference> compare(const Build& then, const Build& now) {
  std::vector<Difference> out;
  compare_digests("source", "the unit's source", then.source, now.source, out);
  compare_digests("source", "the unit's preamble", then.preamble, now.preamble, out);
  compare_headers(then, now, out);
  compare_lists("option", then.options, now.options, out);
  compare_lists("entry", then.entries, now.entries, out);
  if (then.include_roots.size() != now.include_roots.size()) {
    compare_lists("include folder", then.include_roots, now.include_roots, out);
  }
  if (!(then.target == now.target)) out.push_back({"target", "architecture", then.target.name(), now.target.name()});
  compare_compilers(then.compiler, now.compiler, out);
  return out;
}

Difference difference_of(const Mismatch& mismatch) {
  Difference difference{"header", mismatch.path, "", ""};
  switch (mismatch.expected.state) {
    case Closure::State::Read:
    case Closure::State::Sealed:
      difference.then = mismatch.expected.digest.hex();
      difference.now = mismatch.found ? mismatch.found->hex() : "not there";
      if (mismatch.found && *mismatch.found == mismatch.expected.digest) {
        difference.now = "the same content at another time, and times are in the output";
      }
      break;
    case Closure::State::Absent:
      difference.then = "not there";
      difference.now = "there, and found before the one that was read";
      break;
    case Closure::State::Present:
      difference.then = "there";
      difference.now = "not there, or changed";
      break;
  }
  if (mismatch.expected.name.empty()) difference = {"place", mismatch.text, "", ""};
  return difference;
}

// The same request, so a file differs: which one, against the closure that comes nearest (the newest).
std::vector<Difference> compare_files(const Recipe& recipe, const Resolver::Parts& parts) {
  const auto closures = parts.store->closures(recipe.request_key(), Store::kMostClosures);
  if (!closures || closures->empty()) return {};
  std::vector<Difference> out;
  for (const Mismatch& mismatch : mismatches(closures->front(), recipe.places(), *parts.digests)) {
    out.push_back(difference_of(mismatch));
  }
  return out;
}

std::string summarise(const Explanation& explanation) {
  if (explanation.hit) return std::string("hit: the ") + to_string(explanation.answer->origin) + " tier has it";
  if (!explanation.nearest) return "miss: no earlier build of this unit is known";
  if (explanation.differences.empty()) {
    return "miss: every known input is as it was at the last build; the entry was evicted, cleared or damaged";
  }
  const Difference& first = explanation.differences.front();
  // "the unit's source" says itself which input it is.
  const std::string input = first.input == "source" ? first.what : first.input + " " + first.what;
  std::string text = "miss: " + input + " changed since the nearest earlier build";
  if (explanation.differences.size() > 1) {
    text += " (and " + std::to_string(explanation.differences.size() - 1) + " more)";
  }
  return text;
}

}  // namespace

Explanation explain_miss(const Recipe& recipe, const Resolver::Parts& parts) {
  Explanation explanation;
  explanation.request = recipe.request_key();
  if (parts.store == nullptr) {
    explanation.summary = "miss: caching is off";
    return explanation;
  }
  if (parts.history != nullptr) {
    const Build now = Build::of(recipe, {}, 0, {});
    const auto builds = parts.history->builds(recipe.unit.kind(), recipe.unit.name());
    for (std::size_t i = 0; builds && i < builds->size(); ++i) {
      const Build& then = (*builds)[i];
      auto differences = compare(then, now);
      if (then.request == explanation.request) differences = compare_files(recipe, parts);
      const bool nearer = !explanation.nearest || differences.size() < explanation.differences.size();
      // The same request is always the nearest: only files differ.
      if (nearer || then.request == explanation.request) {
        explanation.nearest = then;
        explanation.differences = std::move(differences);
      }
      if (then.request == explanation.request) break;
    }
  }
  explanation.summary = summarise(explanation);
  return explanation;
}

Explanation explain(const Recipe& recipe, const Resolver::Parts& parts) {
  if (parts.store == nullptr) return explain_miss(recipe, parts);
  auto found = Resolver(parts).look(recipe);
  if (!found || !*found) return explain_miss(recipe, parts);
  Explanation explanation;
  explanation.request = recipe.request_key();
  explanation.hit = true;
  explanation.answer = std::move(*found);
  explanation.summary = summarise(explanation);
  return explanation;
}

}  // namespace kiln
