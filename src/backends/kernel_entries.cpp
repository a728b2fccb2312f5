// SPDX-License-Identifier: Apache-2.0
#include "backends/kernel_entries.hpp"

#include <algorithm>

#include "backends/source_scan.hpp"
#include "base/error.hpp"
#include "base/format.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxNames = 20;  // more would hide the message
constexpr std::size_t kMaxErrorLine = 300;

// Returns the position after a comment, a literal or a preprocessor directive that starts at `at`; `at` if none does.
std::size_t skip_ignored(std::string_view text, std::size_t at) {
  const auto after = [&](std::string_view end, std::size_t from) {
    const std::size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//") || rest.front() == '#') return after("\n", at);
  if (rest.starts_with("/*")) return after("*/", at + 2);
  if (rest.front() != '"' && rest.front() != '\'') return at;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == rest.front() || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

// Returns the words and the other characters of a source without blanks. They are views of `text`.
std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t next = skip_ignored(text, at); next != at) {
      at = next;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at) ++end;
    const std::string_view token = text.substr(at, end - at);
    if (token.find_first_of(" \t\r\n\f\v") == std::string_view::npos) tokens.push_back(token);
    at = end;
  }
  return tokens;
}

// Returns the index after the bracket that closes the one at `at`.
std::size_t skip_brackets(const std::vector<std::string_view>& tokens, std::size_t at, std::string_view open,
                          std::string_view close) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    if (tokens[at] == open) ++depth;
    if (tokens[at] == close && --depth == 0) return at + 1;
  }
  return at;
}

// Returns the name of the function that is declared after `__global__` at index `at - 1`; empty if there is none.
std::string_view declared_name(const std::vector<std::string_view>& tokens, std::size_t at) {
  while (at + 1 < tokens.size()) {
    const std::string_view token = tokens[at];
    if (token == ";" || token == "{" || token == "}") break;
    const bool is_attribute = token.starts_with("__") || token == "alignas" || token == "decltype";
    std::size_t next = at + 1;
    if (is_word(token.front()) && tokens[next] == "<") next = skip_brackets(tokens, next, "<", ">");
    if (next < tokens.size() && is_word(token.front()) && tokens[next] == "(") {
      if (!is_attribute) return token;
      next = skip_brackets(tokens, next, "(", ")");
    }
    at = next;
  }
  return {};
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

std::vector<std::string> kernel_names(std::string_view source) {
  const std::string text = join_lines(source);
  const std::vector<std::string_view> tokens = tokens_of(text);
  std::vector<std::string> names;
  bool is_template = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == ";" || tokens[i] == "{" || tokens[i] == "}") is_template = false;
    if (tokens[i] == "template") is_template = true;
    if (tokens[i] != "__global__") continue;
    std::string name(declared_name(tokens, i + 1));
    if (name.empty()) continue;
    if (is_template) name += "<…>";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string first_error_line(std::string_view log) {
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    // NVRTC's `a.cu(1): error: text`, `a.cu(1): error #20: text` and `catastrophic error: text`; PoCL's `error: text`.
    const bool is_error =
        line.find("error:") != std::string_view::npos || line.find(": error ") != std::string_view::npos;
    if (is_error) return std::string(truncate_utf8(line, kMaxErrorLine));
  }
  return {};
}

std::optional<UnknownEntry> find_unknown_entry(std::string_view log) {
  constexpr std::string_view kOwnFile = "__nv_name_map(";  // NVRTC's text with the entry points
  constexpr std::string_view kExpression = "Input name expression was: \"";
  constexpr std::string_view kError = ": error";  // `: error: text`, or `: error #20: text`
  UnknownEntry unknown;
  bool is_own = false;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (line.starts_with(kOwnFile)) is_own = true;
    const std::size_t error = line.find(kError);
    if (!is_own && (error != std::string_view::npos || line.find("catastrophic error") != std::string_view::npos)) {
      if (line.find("detected in the compilation") == std::string_view::npos) return std::nullopt;
    }
    if (const std::size_t at = line.find(kExpression); is_own && at != std::string_view::npos) {
      std::string_view entry = line.substr(at + kExpression.size());
      entry = entry.substr(0, entry.rfind('"'));
      entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
      if (unknown.entry.empty()) unknown.entry = entry;
    } else if (is_own && error != std::string_view::npos && unknown.reason.empty()) {
      const std::size_t text = line.find(": ", error + kError.size());
      if (text != std::string_view::npos) unknown.reason = line.substr(text + 2);
    }
    if (!is_own && line.find("detected in the compilation") == std::string_view::npos) {
      unknown.log.append(line).append("\n");
    }
    if (line.empty()) is_own = false;  // an empty line ends a message
  }
  if (unknown.entry.empty()) return std::nullopt;
  if (unknown.log.find_first_not_of('\n') == std::string::npos) unknown.log.clear();
  return unknown;
}

Error unknown_entry_error(const Unit& unit, const UnknownEntry& unknown) {
  // NVRTC prints the tokens of an expression with blanks between them.
  const auto is_same = [&](const std::string& entry) { return without_blanks(entry) == without_blanks(unknown.entry); };
  const auto asked = std::find_if(unit.entries().begin(), unit.entries().end(), is_same);
  const std::string& entry = asked != unit.entries().end() ? *asked : unknown.entry;
  std::vector<std::string> names = kernel_names(unit.full_source());
  for (const Header& header : unit.headers()) {
    for (std::string& name : kernel_names(header.content)) names.push_back(std::move(name));
  }
  const std::size_t more = names.size() > kMaxNames ? names.size() - kMaxNames : 0;
  names.resize(names.size() - more);
  std::string list = names.empty() ? "no __global__ function (a kernel of a header needs its full name)"
                                   : join_strings(names) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
  return make_error(Code::CompileFailed,
                    "unit '" + unit.name() + "' has no kernel '" + entry + "'" +
                        (unknown.reason.empty() ? "" : ": " + unknown.reason) + "; its source has " + list,
                    unknown.log);
}

Result<std::vector<EntryPoint>> entries_by_symbol(const Unit& unit, const std::vector<std::string>& kernels,
                                                  const std::string& log) {
  std::vector<EntryPoint> entries;
  for (const std::string& name : unit.entries()) {
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) {
      return make_error(Code::CompileFailed,
                        "unit '" + unit.name() + "' has no kernel '" + name +
                            "'; it has: " + (kernels.empty() ? "none" : join_strings(kernels)) +
                            " (these are symbols: a name that is not extern \"C\" is mangled)",
                        log);
    }
    entries.push_back({name, name});
  }
  return entries;
}

}  // namespace kiln
