// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_template.hpp"

#include <algorithm>

#include "backends/command/command_work_dir.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln {
namespace {

constexpr std::string_view kIncludes = "{includes}";

// Options that select another tool or another set of inputs than the compiler's identity covers, by a name on the PATH
// or without a name. Options that name a path are recognized by the slash.
constexpr std::string_view kRejected[] = {"-ccbin",      "--compiler-bindir",
                                          "-noprof",     "--dont-use-profile",
                                          "-target-dir", "--target-directory",
                                          "-ldir",       "--libdevice-directory",
                                          "-run",        "--run",
                                          "-nostdinc",   "-wrapper",
                                          "-specs",      "--specs",
                                          "-fplugin"};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

// nvcc passes options to other programs as comma-separated lists.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(", \t='\"", at), text.size());
    if (end > at) pieces.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return pieces;
}

bool is_definition(std::string_view text) { return text.starts_with("-D") || text.starts_with("--define-macro"); }

Error rejected(const Unit& unit, const std::string& reason) {
  return make_error(Code::InvalidArgument, "the command of unit '" + unit.name() + "' " + reason);
}

}  // namespace

std::string find_untracked_input(std::string_view text) {
  if (is_definition(text)) return {};
  for (const std::string_view piece : pieces_of(text)) {
    const bool option_file = piece.starts_with('@') || piece == "-optf" || piece.ends_with("options-file");
    const bool path = piece.find('/') != std::string_view::npos || piece.find("..") != std::string_view::npos;
    const bool other_tools = std::find(std::begin(kRejected), std::end(kRejected), piece) != std::end(kRejected);
    if (option_file || path || other_tools) return std::string(piece);
  }
  return {};
}

Status check_template(const Unit& unit) {
  const std::vector<std::string>& words = unit.options();
  if (words.empty() || words.front().empty()) return rejected(unit, "does not name a program");
  bool output = false;
  bool source = false;
  bool includes = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (contains(words[i], std::string_view("\0", 1))) return rejected(unit, "contains a NUL byte");
    if (i == 0) continue;
    output = output || contains(words[i], "{output}");
    source = source || contains(words[i], "{source}");
    includes = includes || words[i] == kIncludes;
    if (words[i] != kIncludes && contains(words[i], kIncludes)) {
      return rejected(unit, "has {includes} within " + words[i] + "; make {includes} a separate argument");
    }
    if (const std::string hidden = find_untracked_input(words[i]); !hidden.empty()) {
      return rejected(unit, "has the argument " + words[i] + ": " + hidden +
                                " makes the compiler read inputs that kiln does not track; pass directories as "
                                "include roots, files as headers, and options directly instead of option files");
    }
  }
  if (!output || !source) return rejected(unit, "must have {source} and {output} among its arguments");
  if (!includes && !(unit.include_roots().empty() && unit.headers().empty())) {
    return rejected(unit, "has no {includes}, but the unit has include roots or headers");
  }
  return {};
}

bool has_depfile(const Unit& unit) {
  return std::any_of(unit.options().begin(), unit.options().end(),
                     [](const std::string& word) { return contains(word, "{depfile}"); });
}

std::vector<std::string> fill_template(const Recipe& recipe, const std::string& program, const std::string& source) {
  std::vector<std::string> words{program};
  std::string architecture = recipe.target.architecture;
  // PTX is for a virtual architecture.
  if (recipe.target.form == Form::Ptx && architecture.starts_with("sm_")) architecture.replace(0, 3, "compute_");
  for (std::size_t i = 1; i < recipe.unit.options().size(); ++i) {
    std::string word = recipe.unit.options()[i];
    if (word == kIncludes) {
      if (!recipe.unit.headers().empty()) words.emplace_back("-I.");
      for (const IncludeRoot& root : recipe.unit.include_roots()) {
        words.push_back("-I" + locate(recipe.working_directory, root.path));
      }
      continue;
    }
    replace_all(word, "{form}", to_string(recipe.target.form));
    replace_all(word, "{arch}", architecture);
    replace_all(word, "{output}", CommandWorkDir::kOutput);
    replace_all(word, "{depfile}", CommandWorkDir::kDepfile);
    // Replaced last, because the user chooses the name and it can contain braces.
    replace_all(word, "{source}", source);
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace kiln
