// SPDX-License-Identifier: Apache-2.0
#include "backends/parameter_types.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace kiln {
namespace {

using Kind = KernelParameter::Kind;

// A symbol can come from another host. Each of its back references can double the text, so that both are limited.
constexpr std::size_t kMaxSymbol = 1024;
constexpr std::ptrdiff_t kMaxReferences = 16;

struct Scalar {
  std::string_view name;
  Kind kind = Kind::Unknown;
  std::size_t size = 0;
};
constexpr Scalar kScalars[] = {
    {"bool", Kind::Integer, 1},
    {"char", Kind::Integer, 1},
    {"signed char", Kind::Integer, 1},
    {"unsigned char", Kind::Integer, 1},
    {"uchar", Kind::Integer, 1},
    {"short", Kind::Integer, 2},
    {"unsigned short", Kind::Integer, 2},
    {"ushort", Kind::Integer, 2},
    {"int", Kind::Integer, 4},
    {"unsigned int", Kind::Integer, 4},
    {"uint", Kind::Integer, 4},
    {"long", Kind::Integer, 8},
    {"unsigned long", Kind::Integer, 8},
    {"ulong", Kind::Integer, 8},
    {"long long", Kind::Integer, 8},
    {"unsigned long long", Kind::Integer, 8},
    {"half", Kind::Float, 2},
    {"float", Kind::Float, 4},
    {"double", Kind::Float, 8},
};

Scalar scalar_of(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kScalars), std::end(kScalars), [&](const Scalar& one) { return one.name == name; });
  return found != std::end(kScalars) ? *found : Scalar{};
}

// Returns the type without qualifiers and double spaces: "const float *" becomes "float*".
std::string without_qualifiers(std::string_view type) {
  constexpr std::string_view kQualifiers[] = {"const", "volatile", "restrict", "__restrict", "__restrict__"};
  std::string out;
  for (std::size_t at = 0; at < type.size();) {
    const std::size_t end = std::min(type.find_first_of(" *", at), type.size());
    const std::string_view word = type.substr(at, end - at);
    if (!word.empty() && std::find(std::begin(kQualifiers), std::end(kQualifiers), word) == std::end(kQualifiers)) {
      if (!out.empty() && out.back() != '*') out += ' ';
      out += word;
    }
    if (end < type.size() && type[end] == '*') out += '*';
    at = end + 1;
  }
  return out;
}

std::string demangled(const std::string& symbol) {
  const auto is_reference = [](char letter) { return letter == 'S' || letter == 'T'; };
  if (!symbol.starts_with("_Z") || symbol.size() > kMaxSymbol) return {};
  if (std::count_if(symbol.begin(), symbol.end(), is_reference) > kMaxReferences) return {};
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr),
                                                         &std::free);
  return text != nullptr ? text.get() : "";
}

// Returns the parts between the outer parentheses at the end of a declaration: `void f<(int)3>(float*, X<int, 2>)`.
std::vector<std::string> parameter_types(std::string_view declaration) {
  std::vector<std::string> types;
  if (!declaration.ends_with(')')) return types;
  int depth = 0;
  std::size_t end = declaration.size() - 1;
  for (std::size_t at = end; at-- > 0;) {
    const char letter = declaration[at];
    if (letter == ')' || letter == '>' || letter == ']') ++depth;
    const bool is_begin = depth == 0 && letter == '(';
    if (is_begin || (depth == 0 && letter == ',')) {
      std::string_view type = declaration.substr(at + 1, end - at - 1);
      type.remove_prefix(std::min(type.find_first_not_of(' '), type.size()));
      if (!type.empty()) types.emplace_back(type);
      end = at;
    }
    if (is_begin) {
      std::reverse(types.begin(), types.end());
      return types;
    }
    if (letter == '(' || letter == '<' || letter == '[') --depth;
  }
  return {};
}

}  // namespace

KernelParameter parameter_of_type(std::string_view type) {
  KernelParameter parameter;
  parameter.type = type;
  const std::string plain = without_qualifiers(type);
  if (plain.ends_with('*')) {
    const std::string_view element = std::string_view(plain).substr(0, plain.size() - 1);
    // Not known for vectors: a kernel can read an array of any type as float4, 16 bytes at once.
    const Scalar scalar = scalar_of(element);
    parameter.kind = Kind::Pointer;
    parameter.size = sizeof(void*);
    parameter.element = scalar.kind;
    parameter.element_size = scalar.size;
    return parameter;
  }
  const Scalar scalar = scalar_of(plain);
  parameter.kind = scalar.kind;
  parameter.size = scalar.size;
  return parameter;
}

KernelParameters parameters_of_symbol(const std::string& symbol, const std::vector<std::size_t>& sizes) {
  const std::vector<std::string> types = parameter_types(demangled(symbol));
  KernelParameters parameters(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (types.size() == sizes.size()) {
      KernelParameter typed = parameter_of_type(types[i]);
      if (typed.size == sizes[i]) {
        parameters[i] = std::move(typed);
      } else {
        parameters[i].type = types[i];
      }
    }
    parameters[i].size = sizes[i];
  }
  return parameters;
}

}  // namespace kiln
