// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "support/fakes/cuda_driver/image.hpp"

namespace kiln::test::driver {
namespace {

using cuda::DriverResult;

/// A tokenizer of PTX: names, directives, numbers and single marks. Skips comments.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  /// Returns the next token; empty at the end.
  std::string_view next() {
    skip_space();
    if (rest_.empty()) return {};
    std::size_t length = 0;
    while (length < rest_.size() && is_name(rest_[length])) ++length;
    if (length == 0) length = 1;
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return word;
  }

 private:
  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' || c == '%';
  }
  void skip_space() {
    for (;;) {
      while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) rest_.remove_prefix(1);
      const bool line = rest_.starts_with("//");
      if (!line && !rest_.starts_with("/*")) return;
      const std::size_t end = line ? rest_.find('\n') : rest_.find("*/", 2);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + (line ? 1 : 2));
    }
  }
  std::string_view rest_;
};

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the size of `.u32`, `.f64`, `.b8`, …; 0 for anything else.
std::size_t size_of_type(std::string_view type) {
  if (type.size() < 3 || type[0] != '.' || std::string_view("usbf").find(type[1]) == std::string_view::npos) return 0;
  const auto bits = number(type.substr(2));
  return bits && (*bits == 8 || *bits == 16 || *bits == 32 || *bits == 64) ? *bits / 8 : 0;
}

/// Reads the tokens between the parentheses of an entry. Returns false if they are not a parameter list.
bool read_parameters(Words& words, KernelImage& kernel) {
  constexpr std::size_t kMaxBytes = 32764;
  std::size_t alignment = 0;
  std::size_t size = 0;
  std::size_t count = 1;
  const auto finish = [&] {
    if (size == 0) return true;
    alignment = std::max(alignment, size);
    const std::size_t offset = (kernel.parameter_bytes + alignment - 1) / alignment * alignment;
    if (alignment > 128 || count > kMaxBytes || offset + size * count > kMaxBytes) return false;
    kernel.parameters.push_back({offset, size * count});
    kernel.parameter_bytes = offset + size * count;
    alignment = size = 0;
    count = 1;
    return true;
  };
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ")") return finish();
    if (word == ",") {
      if (!finish()) return false;
    } else if (word == ".align" || word == "[") {
      const auto value = number(words.next());
      if (!value || *value == 0) return false;
      (word == "[" ? count : alignment) = *value;
    } else if (size == 0) {
      size = size_of_type(word);
    }
  }
  return false;
}

bool read_entry(Words& words, Image& image) {
  KernelImage kernel;
  kernel.name = words.next();
  kernel.registers = 32;  // the choice of the driver's compiler is unknown
  if (kernel.name.empty() || words.next() != "(" || !read_parameters(words, kernel)) return false;
  image.kernels.push_back(std::move(kernel));
  return true;
}

bool read_threads(Words& words, Image& image) {
  unsigned product = 1;
  for (;;) {
    const auto value = number(words.next());
    if (!value || *value == 0 || *value > 1024) return false;
    product = std::min(product * *value, 1024u);
    if (Words ahead = words; ahead.next() != ",") break;
    words.next();
  }
  if (!image.kernels.empty()) image.kernels.back().max_threads = product;
  return true;
}

bool read_target(std::string_view word, Image& image) {
  if (!word.starts_with("sm_")) return false;
  word.remove_prefix(3);
  if (word.ends_with("a") || word.ends_with("f")) {
    image.exact = word.ends_with("a");
    word.remove_suffix(1);
  }
  const auto value = number(word);
  if (!value || *value > 999) return false;
  image.architecture = static_cast<int>(*value);
  return true;
}

std::optional<int> read_version(std::string_view word) {
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = number(word.substr(0, dot));
  const auto minor = number(word.substr(dot + 1));
  if (!major || !minor || *major > 99 || *minor > 9) return std::nullopt;
  return static_cast<int>(*major * 10 + *minor);
}

}  // namespace

DriverResult read_ptx(std::string_view text, int newest, Image& image) {
  image = {};
  image.kind = Image::Kind::Ptx;
  Words words(text);
  if (words.next() != ".version") return DriverResult::InvalidImage;
  const auto version = read_version(words.next());
  if (!version) return DriverResult::InvalidPtx;
  if (*version > newest) return DriverResult::UnsupportedPtxVersion;
  if (words.next() != ".target" || !read_target(words.next(), image)) return DriverResult::InvalidPtx;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ".entry" && !read_entry(words, image)) return DriverResult::InvalidPtx;
    if (word == ".maxntid" && !read_threads(words, image)) return DriverResult::InvalidPtx;
  }
  return DriverResult::Success;
}

}  // namespace kiln::test::driver
