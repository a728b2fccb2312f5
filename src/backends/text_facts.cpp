// SPDX-License-Identifier: Apache-2.0
#include "backends/text_facts.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "backends/source_scan.hpp"
#include "base/files/files.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

constexpr std::string_view kTimeMacros[] = {"__TIME__", "__DATE__", "__TIMESTAMP__"};
constexpr std::string_view kFileMacros[] = {"__FILE__", "__BASE_FILE__", "__builtin_FILE"};
constexpr std::size_t kMaxMacroLength = std::string_view("__builtin_FILE").size();

// memmem is several times faster than string_view::find in texts full of underscores.
bool has(std::string_view text, std::string_view word) {
  return memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

std::string_view macro_in(std::string_view text) {
  if (!has(text, "TIME") && !has(text, "DATE__")) return {};
  for (const std::string_view macro : kTimeMacros) {
    if (has(text, macro)) return macro;
  }
  return {};
}

bool is_piece(std::string_view word) {
  const auto is_part = [&](std::string_view macro) {
    return word.size() < macro.size() && macro.find(word) != std::string_view::npos;
  };
  return std::any_of(std::begin(kTimeMacros), std::end(kTimeMacros), is_part) ||
         std::any_of(std::begin(kFileMacros), std::end(kFileMacros), is_part);
}

// Returns the end of the comment or string literal that starts here; `at` itself if there is none, or if a string does
// not end in its line.
std::size_t end_of_span(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? at : end + 2;
  }
  const bool is_character = at > 0 && (text[at - 1] == '\'' || text[at - 1] == '\\');
  if (rest.front() != '"' || is_character) return at;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return at;
}

// Single letters do not count: template parameters have such names, and building a macro letter by letter does not
// happen by accident.
void add_pieces(std::string_view text, std::set<std::string, std::less<>>& pieces) {
  const bool has_raw_strings = has(text, "R\"");  // these can span many lines
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    while (i < text.size() && is_word(text[i])) ++i;
    const std::string_view word = text.substr(start, i - start);
    if (word.empty()) {
      const bool may_span = (text[i] == '/' || text[i] == '"') && !has_raw_strings;
      i = std::max(i + 1, may_span ? end_of_span(text, i) : i);
    } else if ((word.size() > 1 || word == "_") && is_piece(word) && !pieces.contains(word)) {
      pieces.emplace(word);
    }
  }
}

// Returns true if a backslash at the end of a line splits a word or an operator of two characters.
bool has_split_words(std::string_view text) {
  for (std::size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 1)) {
    const std::size_t end = text.find_first_not_of(" \t\r\f\v", at + 1);
    if (end == std::string_view::npos || text[end] != '\n' || at == 0 || end + 1 == text.size()) continue;
    const char before = text[at - 1];
    const char behind = text[end + 1];
    const bool is_operator = before == behind && (before == '#' || before == '/');
    const bool is_joint = (is_word(before) && is_word(behind)) || before == '%' || before == ':' || is_operator;
    if (is_joint || before == '\\' || behind == '\\') return true;
  }
  return false;
}

// Returns the text with its lines joined if that is necessary, using `storage`. A trigraph of a backslash counts as a
// backslash.
std::string_view with_joined_lines(std::string_view text, std::string& storage) {
  constexpr std::string_view kTrigraph = "\?\?/";
  const bool has_trigraph = text.find('?') != std::string_view::npos && has(text, kTrigraph);
  if (!has_trigraph && !has_split_words(text)) return text;
  storage = text;
  for (std::size_t at = storage.find(kTrigraph); at != std::string::npos; at = storage.find(kTrigraph, at)) {
    storage.replace(at, kTrigraph.size(), "\\");
  }
  storage = join_lines(storage);
  return storage;
}

bool is_vendor_root(const std::string& path) {
  // The headers that NVRTC 13.3 bundles have no cuda_runtime_api.h.
  constexpr const char* kFiles[] = {"cuda_runtime_api.h", "cub/version.cuh", "nv/target", "cooperative_groups.h"};
  return std::any_of(std::begin(kFiles), std::end(kFiles),
                     [&](const char* file) { return exists(join_path(path, file)); });
}

// Returns true if NVIDIA ships a file of this name below such a root. Such a root can contain headers of other vendors,
// too.
bool is_vendor_name(std::string_view name) {
  static constexpr std::string_view kDirectories[] = {
      "cub/", "thrust/", "cuda/", "nv/", "cccl/", "crt/", "cooperative_groups/"};
  static constexpr std::string_view kFiles[] = {"cooperative_groups.h", "cuda_", "curand"};
  const auto starts = [&](std::string_view start) { return name.starts_with(start); };
  if (std::any_of(std::begin(kDirectories), std::end(kDirectories), starts)) return true;
  return name.find('/') == std::string_view::npos && std::any_of(std::begin(kFiles), std::end(kFiles), starts);
}

bool has_paste_operator(std::string_view text) {
  const auto is_there = [&](char first, std::string_view whole) {
    for (std::size_t at = text.find(first); at != std::string_view::npos; at = text.find(first, at + 1)) {
      if (text.substr(at).starts_with(whole)) return true;
    }
    return false;
  };
  return is_there('#', "##") || is_there('%', "%:%:") || is_there('?', "\?\?=");
}

// A root below another one is found by searching for the other one.
bool names_root(std::string_view text, const std::vector<std::string>& roots) {
  return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
    const bool is_below = std::any_of(roots.begin(), roots.end(), [&](const std::string& other) {
      return other.size() < root.size() && root.starts_with(other);
    });
    return !is_below && has(text, root);
  });
}

bool has_as_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> first_components(const std::vector<std::string>& paths) {
  std::set<std::string> components;
  for (const std::string& path : paths) {
    if (path.starts_with('/')) components.insert(path.substr(1, path.find('/', 1) - 1));
  }
  return {components.begin(), components.end()};
}

bool has_component(std::string_view text, const std::vector<std::string>& components) {
  return std::any_of(components.begin(), components.end(),
                     [&](const std::string& component) { return component.empty() || has_as_word(text, component); });
}

std::string_view time_macro(std::string_view text) {
  std::string storage;
  return macro_in(with_joined_lines(text, storage));
}

TextScanner::TextScanner(const Recipe& recipe) {
  for (const IncludeRoot& root : recipe.path_roots().roots) {
    const std::string path = normalize_path(root.path);
    if (path.starts_with('/')) roots_.push_back(path);
    if (is_vendor_root(locate(recipe.working_directory, root.path))) vendor_roots_.push_back(path + '/');
  }
  first_components_ = first_components(roots_);
}

bool TextScanner::is_vendors(const std::string& path, std::string_view text) const {
  const auto is_below = [&](const std::string& root) {
    if (!path.starts_with(root)) return false;
    const std::string_view name = std::string_view(path).substr(root.size());
    if (!is_vendor_name(name)) return false;
    if (has(text, "NVIDIA") || has(text, "_CUDA_PTX_GENERATED_")) return true;
    // Some headers of libcu++ contain only the names of other authors.
    return name.starts_with("cuda/std/") && (has(text, "_CCCL_") || has(text, "_LIBCUDACXX"));
  };
  return std::any_of(vendor_roots_.begin(), vendor_roots_.end(), is_below);
}

TextFacts TextScanner::facts_of(const std::string& path, std::string_view text) const {
  std::string storage;
  text = with_joined_lines(text, storage);
  TextFacts facts;
  facts.is_vendors = is_vendors(normalize_path(path), text);
  facts.has_once = has(text, "once");
  facts.time_macro = macro_in(text);
  facts.pastes = facts.is_vendors || has_paste_operator(text);
  if (facts.is_vendors) return facts;
  facts.names_file = may_expand_file_macro(text);
  facts.names_reader = facts.names_file && may_expand_includer_name(text);
  facts.names_program = facts.names_reader && may_expand_base_file(text);
  facts.names_root = names_root(text, roots_);
  facts.starts_root = has_component(text, first_components_);
  facts.computes_include = may_compute_include(text);
  std::set<std::string, std::less<>> pieces;
  add_pieces(text, pieces);
  for (const std::string& piece : pieces) facts.pieces += (facts.pieces.empty() ? "" : " ") + piece;
  return facts;
}

void MacroPieces::add(const TextFacts& facts) {
  pastes_ = pastes_ || facts.pastes;
  for (const std::string_view piece : split(facts.pieces, ' ')) {
    if (!piece.empty() && is_piece(piece)) pieces_.emplace(piece);
  }
}

void MacroPieces::add(std::string_view text) {
  std::string storage;
  text = with_joined_lines(text, storage);
  pastes_ = pastes_ || has_paste_operator(text);
  add_pieces(text, pieces_);
}

bool MacroPieces::can_make(std::string_view macro) const {
  std::array<bool, kMaxMacroLength + 1> reached{true};  // by length: true if pieces can build the start of the macro of
                                                        // this length
  for (std::size_t at = 0; at < macro.size(); ++at) {
    for (std::size_t size = 1; reached[at] && at + size <= macro.size(); ++size) {
      if (pieces_.contains(macro.substr(at, size))) reached[at + size] = true;
    }
  }
  return reached[macro.size()];
}

std::string_view MacroPieces::time_macro() const {
  const auto can = [&](std::string_view macro) { return can_make(macro); };
  const auto* const found = std::find_if(std::begin(kTimeMacros), std::end(kTimeMacros), can);
  return pastes_ && found != std::end(kTimeMacros) ? *found : std::string_view();
}

bool MacroPieces::names_file() const {
  const auto can = [&](std::string_view macro) { return can_make(macro); };
  return pastes_ && std::any_of(std::begin(kFileMacros), std::end(kFileMacros), can);
}

std::string time_macro_of(const Recipe& recipe) {
  MacroPieces pieces;
  for (const std::string_view text : texts_of(recipe)) {
    if (const std::string_view macro = time_macro(text); !macro.empty()) return std::string(macro);
    pieces.add(text);
  }
  return std::string(pieces.time_macro());
}

}  // namespace kiln
