// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_inputs.hpp"

#include <algorithm>
#include <string_view>

#include "backends/source_scan.hpp"
#include "backends/text_facts.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"

namespace kiln {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = text.find_first_not_of(" \t\n\"'", i);
    if (start == std::string_view::npos) break;
    i = std::min(text.find_first_of(" \t\n", start), text.size());
    words.push_back(text.substr(start, i - start));
  }
  return words;
}

// Returns true for options by which C compilers read files. OpenCL defines only -I; drivers based on clang can accept
// more.
bool names_a_file(std::string_view option) {
  static constexpr std::string_view kPrefixes[] = {"-I", "-i", "-F", "-X", "-B", "--sysroot", "-fplugin", "@"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return option.starts_with(prefix); });
}

// Returns the end of the literal or comment that starts at `at`; `at` itself if there is none. Literals end with the
// line.
std::size_t end_of_span(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  if (text.substr(at, 2) == "/*") {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? text.size() : end + 2;
  }
  if (text[at] != '"' && text[at] != '\'') return at;
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != '\n' && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return text.size();
  return text[end] == '\n' ? end : end + 1;
}

std::string without_comments(std::string_view text) {
  const std::string joined = join_lines(text);
  std::string out;
  out.reserve(joined.size());
  for (std::size_t i = 0; i < joined.size();) {
    const std::size_t end = end_of_span(joined, i);
    if (end == i) {
      out += joined[i++];
    } else if (joined[i] == '/') {
      out += ' ';
      i = end;
    } else {
      out.append(joined, i, end - i);
      i = end;
    }
  }
  return out;
}

// Returns the header name at this position, "a.h" or <a.h>, optionally after a parenthesis; empty if there is none.
std::string header_name(std::string_view text, std::size_t at) {
  while (at < text.size() && (is_blank(text[at]) || text[at] == '(')) ++at;
  if (at >= text.size() || (text[at] != '"' && text[at] != '<')) return {};
  const std::size_t end = text.find_first_of(text[at] == '"' ? "\"\n" : ">\n", at + 1);
  if (end == std::string_view::npos || text[end] == '\n') return {};
  return std::string(text.substr(at + 1, end - at - 1));
}

bool in_memory(const Unit& unit, const std::string& includer, const std::string& name) {
  const std::size_t slash = includer.rfind('/');
  const std::string beside = slash == std::string::npos ? name : includer.substr(0, slash + 1) + name;
  return std::any_of(unit.headers().begin(), unit.headers().end(),
                     [&](const Header& header) { return header.name == name || header.name == beside; });
}

// Returns the first include or __has_include of this text that does not name an in-memory header, as written; empty if
// there is none.
std::string outside(const Unit& unit, const std::string& includer, std::string_view text) {
  if (!may_include(text)) return {};
  if (text.find("\?\?=") != std::string_view::npos || text.find("\?\?/") != std::string_view::npos) return "a trigraph";
  const std::string clean = without_comments(text);
  bool directive = false;  // a # was seen, followed only by blanks
  bool line_start = true;
  for (std::size_t i = 0; i < clean.size();) {
    if (clean[i] == '"' || clean[i] == '\'') {
      i = std::max(end_of_span(clean, i), i + 1);
      directive = line_start = false;
    } else if (is_word(clean[i])) {
      std::size_t end = i;
      while (end < clean.size() && is_word(clean[end])) ++end;
      const std::string word = clean.substr(i, end - i);
      const bool asks = word.starts_with("__has_include") || word == "__has_embed";
      const bool reads = directive && (word.starts_with("include") || word == "import" || word == "embed");
      if (asks || reads) {
        const std::string name = header_name(clean, end);
        const bool plain = word == "include" || word == "__has_include";
        if (!plain || name.empty() || !in_memory(unit, includer, name)) return name.empty() ? word : name;
        end = clean.find(name, end) + name.size() + 1;
      }
      i = end;
      directive = line_start = false;
    } else {
      if (line_start && (clean[i] == '#' || clean.compare(i, 2, "%:") == 0)) {
        i += clean[i] == '%' ? 1 : 0;
        directive = true;
      } else if (!is_blank(clean[i])) {
        directive = false;
      }
      line_start = clean[i] == '\n' || (line_start && is_blank(clean[i]));
      ++i;
    }
  }
  return {};
}

}  // namespace

Status check_opencl_inputs(const Unit& unit) {
  if (!unit.include_roots().empty()) {
    return make_error(Code::Unsupported, "OpenCL units support only in-memory headers, but " + unit.name() +
                                             " has an include directory; pass its headers with Unit::with_header");
  }
  for (const std::string& option : unit.options()) {
    for (const std::string_view word : words_of(option)) {
      if (!names_a_file(word)) continue;
      return make_error(Code::Unsupported, "OpenCL units support only in-memory headers, but " + unit.name() +
                                               " has the option " + std::string(word) +
                                               "; pass its headers with Unit::with_header");
    }
  }
  for (const Header& header : unit.headers()) {
    const bool leads_out = header.name.empty() || header.name.front() == '/' || header.name.starts_with("../") ||
                           header.name.find("/../") != std::string::npos;
    if (leads_out)
      return make_error(Code::InvalidArgument, "'" + header.name + "' is not a valid name for an in-memory header");
  }
  return {};
}

std::string opencl_untracked_inputs(const Unit& unit) {
  MacroPieces pieces;
  const auto of_text = [&](const std::string& includer, std::string_view text) -> std::string {
    pieces.add(text);
    if (const std::string_view macro = time_macro(text); !macro.empty()) {
      return std::string(macro) + " puts the time of the compile into the result";
    }
    if (const std::string name = outside(unit, includer, text); !name.empty()) {
      return "it may include a file that is not among its headers (" + name + ")";
    }
    return {};
  };
  if (std::string reason = of_text("", unit.full_source()); !reason.empty()) return reason;
  for (const Header& header : unit.headers()) {
    if (std::string reason = of_text(header.name, header.content); !reason.empty()) return reason;
  }
  for (const std::string& option : unit.options()) {
    pieces.add(option);
    if (const std::string_view macro = time_macro(option); !macro.empty()) {
      return std::string(macro) + " puts the time of the compile into the result";
    }
  }
  if (const std::string_view macro = pieces.time_macro(); !macro.empty()) {
    return "its texts can paste tokens into " + std::string(macro) +
           ", which puts the time of the compile into the result";
  }
  for (const auto& [name, value] : opencl_environment()) {
    for (const std::string_view word : words_of(value)) {
      if (names_a_file(word)) return name + " makes the compiler read files (" + std::string(word) + ")";
    }
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> opencl_environment() {
  static constexpr std::string_view kHarmless[] = {
      "POCL_AFFINITY",        "POCL_CACHE_DIR",      "POCL_DEBUG",
      "POCL_DEVICES",         "POCL_KERNEL_CACHE",   "POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES",
      "POCL_MEMORY_LIMIT",    "POCL_SIGFPE_HANDLER", "POCL_MAX_PTHREAD_COUNT",
      "POCL_SIGUSR2_HANDLER", "POCL_STARTUP_DELAY",  "POCL_PTHREAD_MIN_THREADS",
      "POCL_TRACING",         "POCL_TRACING_OPT",    "POCL_TRACING_FILTER"};
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& entry : current_environment()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (!name.starts_with("POCL_") && !name.starts_with("AMD_OCL_BUILD_OPTIONS")) continue;
    if (std::find(std::begin(kHarmless), std::end(kHarmless), name) != std::end(kHarmless)) continue;
    found.emplace_back(name, name.size() < entry.size() ? entry.substr(name.size() + 1) : std::string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::pair<std::string, std::string>> opencl_place() {
  // HOME and XDG_CACHE_HOME: without them PoCL stores its files in a directory of /tmp that any user can create first.
  static constexpr std::string_view kNames[] = {"HOME", "XDG_CACHE_HOME", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};
  // Loaders (ocl-icd, Khronos), PoCL, NVIDIA, AMD, Intel, Mesa.
  static constexpr std::string_view kPrefixes[] = {"OCL_", "OPENCL_", "POCL_", "NVIDIA_", "AMD_",    "ROCR_",
                                                   "HIP_", "HSA_",    "ZE_",   "ONEAPI_", "RUSTICL_"};
  const auto decided = opencl_environment();
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& entry : current_environment()) {
    const std::string name = entry.substr(0, entry.find('='));
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    const auto is_decided = [&](const auto& variable) { return variable.first == name; };
    const bool is_named = std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
    if (!is_named && std::none_of(std::begin(kPrefixes), std::end(kPrefixes), begins)) continue;
    if (std::any_of(decided.begin(), decided.end(), is_decided)) continue;
    if (auto value = environment_variable(name.c_str())) found.emplace_back(name, std::move(*value));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string opencl_link_options(const std::vector<std::string>& options) {
  static constexpr std::string_view kTaken[] = {"-cl-denorms-are-zero", "-cl-no-signed-zeroes",
                                                "-cl-unsafe-math-optimizations", "-cl-finite-math-only",
                                                "-cl-fast-relaxed-math"};
  std::string joined;
  for (const std::string& option : options) {
    for (const std::string_view word : words_of(option)) {
      if (std::find(std::begin(kTaken), std::end(kTaken), word) == std::end(kTaken)) continue;
      joined.append(joined.empty() ? "" : " ").append(word);
    }
  }
  return joined;
}

}  // namespace kiln
