// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/page.hpp"

#include "analysis/report/markup.hpp"
#include "analysis/report/page_files.hpp"
#include "base/hash.hpp"

namespace kiln::report {
namespace {

std::string base64(const Digest& digest) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < digest.bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, digest.bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? digest.bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// Replaces the placeholders of a template with values. Values are not searched for placeholders.
std::string filled(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find("{{");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find("}}", begin);
    out += text.substr(0, end == std::string_view::npos ? text.size() : begin);
    if (end == std::string_view::npos) break;
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    for (const auto& [known, value] : values) {
      if (known == name) out += value;
    }
    text.remove_prefix(end + 2);
  }
  return out;
}

}  // namespace

std::string page(const Model& model) {
  // The content security policy allows only this style and script and no network access, even if a trace contains
  // hostile names.
  return filled(kPageTemplate, {{"style_digest", base64(sha256(kPageStyle))},
                                {"script_digest", base64(sha256(kPageScript))},
                                {"style", kPageStyle},
                                {"model", escape_markup(model_json(model, -1), kJsonEscapes)},
                                {"script", kPageScript}});
}

}  // namespace kiln::report
