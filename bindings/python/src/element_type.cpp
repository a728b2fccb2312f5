// SPDX-License-Identifier: Apache-2.0
#include "element_type.hpp"

#include <nanobind/stl/string.h>

#include <cstdlib>
#include <string_view>

#include "errors.hpp"

namespace kiln::python {
namespace {

using Kind = KernelParameter::Kind;

bool is_number(char letter) { return std::string_view("fiubc").find(letter) != std::string_view::npos; }

Kind kind_of(char letter) {
  if (letter == 'f') return Kind::Float;
  return letter == 'i' || letter == 'u' ? Kind::Integer : Kind::Unknown;
}

}  // namespace

std::string ElementType::interface_name() const { return (size == 1 ? "|" : "<") + (letter + std::to_string(size)); }

std::string ElementType::name() const {
  if (letter == 'b') return "bool";
  const char* const word = letter == 'f' ? "float" : letter == 'i' ? "int" : letter == 'c' ? "complex" : "uint";
  return word + std::to_string(8 * size);
}

ElementType element_of_format(const char* format, std::size_t size) {
  std::string_view text = format != nullptr ? format : "B";
  if (!text.empty() && std::string_view("@=<").find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  if (text.size() == 2 && text.front() == 'Z') return {'c', size};
  if (text.size() != 1) return {};
  const char letter = text.front();
  if (std::string_view("efd").find(letter) != std::string_view::npos) return {'f', size};
  if (std::string_view("bhilqn").find(letter) != std::string_view::npos) return {'i', size};
  if (std::string_view("BHILQNP").find(letter) != std::string_view::npos) return {'u', size};
  return letter == '?' ? ElementType{'b', size} : ElementType{};
}

ElementType element_of_interface(const std::string& text) {
  if (text.size() < 3 || text.front() == '>' || !is_number(text[1])) return {};
  const unsigned long size = std::strtoul(text.c_str() + 2, nullptr, 10);
  return size != 0 && size <= 64 ? ElementType{text[1], size} : ElementType{};
}

ElementType element_of_dlpack(unsigned code, unsigned bits, unsigned lanes) {
  constexpr std::string_view kLetters = "iuf--c";  // the codes of DLPack, without bfloat and opaque handles
  if (lanes != 1 || bits % 8 != 0 || code >= kLetters.size() || kLetters[code] == '-') return {};
  return {kLetters[code], bits / 8};
}

ElementType element_of_dtype(nb::handle dtype) {
  const nb::object made = nb::module_::import_("numpy").attr("dtype")(dtype);
  const auto text = nb::cast<std::string>(made.attr("str"));
  const ElementType element = element_of_interface(text);
  if (element.interface_name() != text) {
    throw nb::type_error(("a buffer has elements that are numbers, not " + text + "; use bytes").c_str());
  }
  return element;
}

bool fits(const ElementType& given, const ElementType& wanted) {
  if (given.is_bytes() || wanted.is_bytes()) return true;
  const bool same_kind = given.letter == wanted.letter ||
                         (kind_of(given.letter) == Kind::Integer && kind_of(wanted.letter) == Kind::Integer);
  return same_kind && given.size == wanted.size;
}

bool fits(const ElementType& given, const KernelParameter& parameter) {
  const Kind kind = kind_of(given.letter);
  if (kind == Kind::Unknown || given.is_bytes()) return true;
  if (parameter.element == Kind::Unknown || parameter.element_size == 1) return true;
  return kind == parameter.element && given.size == parameter.element_size;
}

}  // namespace kiln::python
