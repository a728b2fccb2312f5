#include "compile/command_template.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files.hpp"
#include "compile/command_folder.hpp"

namespace kiln {
namespace {

constexpr std::string_view kIncludes = "{includes}";

// Options that choose another tool or another set of inputs than the compiler's identity covers, by names on the PATH
// or without any name. What names a path is found by its slash.
constexpr std::string_view kRefused[] = {"-ccbin",      "--compiler-bindir",
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

// nvcc hands options on to other programs as lists with commas.
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

Error refused(const Unit& unit, const std::string& why) {
  return failure(Code::InvalidArgument, "the command of unit '" + unit.name() + "' " + why);
}

}  // namespace

std::string names_hidden_input(std::string_view text) {
  if (is_definition(text)) return {};
  for (const std::string_view piece : pieces_of(text)) {
    const bool option_file = piece.starts_with('@') || piece == "-optf" || piece.ends_with("options-file");
    const bool path = piece.find('/') != std::string_view::npos || piece.find("..") != std::string_view::npos;
    const bool other_tools = std::find(std::begin(kRefused), std::end(kRefused), piece) != std::end(kRefused);
    if (option_file || path || other_tools) return std::string(piece);
  }
  return {};
}

Status check_template(const Unit& unit) {
  const std::vector<std::string>& words = unit.options();
  if (words.empty() || words.front().empty()) return refused(unit, "names no program");
  bool output = false;
  bool source = false;
  bool includes = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (contains(words[i], std::string_view("\0", 1))) return refused(unit, "has a NUL byte");
    if (i == 0) continue;
    output = output || contains(words[i], "{output}");
    source = source || contains(words[i], "{source}");
    includes = includes || words[i] == kIncludes;
    if (words[i] != kIncludes && contains(words[i], kIncludes)) {
      return refused(unit, "has {includes} within " + words[i] + "; it stands for arguments of its own");
    }
    if (const std::string hidden = names_hidden_input(words[i]); !hidden.empty()) {
      return refused(unit, "has the argument " + words[i] + ": what " + hidden +
                               " makes the compiler read is not among the inputs that kiln knows. Give folders as "
                               "include roots, files as headers, and options themselves in place of option files");
    }
  }
  if (!output || !source) return refused(unit, "must have {source} and {output} among its arguments");
  if (!includes && !(unit.include_roots().empty() && unit.headers().empty())) {
    return refused(unit, "has no {includes}, and the unit has include roots or headers");
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
        words.push_back("-I" + join_path(recipe.working_directory, root.path));
      }
      continue;
    }
    replace_all(word, "{form}", to_string(recipe.target.form));
    replace_all(word, "{arch}", architecture);
    replace_all(word, "{output}", CommandFolder::kOutput);
    replace_all(word, "{depfile}", CommandFolder::kDepfile);
    // The last, because the name is the user's and may have braces in it.
    replace_all(word, "{source}", source);
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace kiln
