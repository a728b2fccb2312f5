// SPDX-License-Identifier: Apache-2.0
#include "core/unit_file.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln {
namespace {

// Returns true if a source includes a quoted name, which compilers look up next to the source first.
bool has_quoted_include(std::string_view source) {
  constexpr std::string_view kBlanks = " \t";
  const auto skip_blanks = [&](std::size_t at) {
    return std::min(source.find_first_not_of(kBlanks, at), source.size());
  };
  for (std::size_t at = source.find('#'); at != std::string_view::npos; at = source.find('#', at + 1)) {
    const std::size_t word = skip_blanks(at + 1);
    if (source.substr(word, 7) != "include") continue;
    const std::size_t quote = skip_blanks(word + 7);
    if (quote < source.size() && source[quote] == '"') return true;
  }
  return false;
}

Result<Unit> read_unit_file(const std::string& kind, const std::string& path) {
  return catch_to_error([&]() -> Result<Unit> {
    Result<std::string> text = read_source(path);
    if (!text) return std::move(text).error();
    return unit_of_file(kind, unit_name_of_file(path), path, *std::move(text));
  });
}

}  // namespace

std::string unit_name_of_file(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Unit unit_of_file(const std::string& kind, std::string name, const std::string& path, std::string text) {
  const bool beside = kind == "cuda" && has_quoted_include(text);
  const Unit unit = Unit::of_kind(kind, std::move(name), std::move(text));
  return beside ? unit.with_include_root(parent_path(path)) : unit;
}

Result<std::string> read_source(const std::string& path) {
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return make_error(Code::Io, "there is no file " + path);
  return std::string((*bytes)->view());
}

Result<Unit> Unit::cuda_file(const std::string& path) { return read_unit_file("cuda", path); }
Result<Unit> Unit::opencl_file(const std::string& path) { return read_unit_file("opencl", path); }

}  // namespace kiln
