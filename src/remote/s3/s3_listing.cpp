// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/s3_listing.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "remote/s3/xml_reader.hpp"

namespace kiln {
namespace {

/// Collects the rows of a page.
class ListHandler final : public XmlHandler {
 public:
  explicit ListHandler(std::string_view prefix) : prefix_(prefix) {}
  S3ListPage take() { return std::move(page_); }

  bool open(std::string_view name, std::size_t depth) override {
    if (depth == 0) return name == "ListBucketResult";
    if (depth == 1) {
      in_row_ = name == "Contents";
      row_ = {};
      key_.clear();
    }
    return true;
  }
  bool close(std::string_view name, std::size_t depth, std::string_view text) override {
    if (depth == 1 && name == "IsTruncated") page_.is_truncated = text == "true";
    if (depth == 1 && in_row_) add_row();
    if (depth != 2 || !in_row_) return true;
    if (name == "Key") key_ = text;
    if (name == "LastModified") row_.modified = parse_utc(text);
    if (name != "Size") return true;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row_.bytes);
    return error == std::errc() && end == text.data() + text.size();
  }

 private:
  void add_row() {
    in_row_ = false;
    const std::string_view key = key_;
    if (key.starts_with(prefix_)) {
      if (const auto name = Digest::from_hex(key.substr(prefix_.size()))) {
        row_.name = *name;
        page_.objects.push_back(row_);
      }
    }
    page_.last_key = std::max(page_.last_key, key_);
  }

  const std::string_view prefix_;
  S3ListPage page_;
  ObjectStore::ObjectInfo row_;
  std::string key_;
  bool in_row_ = false;
};

}  // namespace

std::optional<S3ListPage> parse_s3_listing(std::string_view text, std::string_view prefix) {
  ListHandler handler(prefix);
  if (!parse_xml(text, handler)) return std::nullopt;
  return handler.take();
}

std::chrono::nanoseconds parse_utc(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || text.back() != 'Z') return {};
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return {};
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    (void)std::from_chars(text.data() + at, text.data() + at + digits, value);
    return value;
  };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hour = number(11, 2);
  const int minute = number(14, 2);
  const int second = number(17, 2);
  // Nanoseconds since 1970 end in the year 2262.
  if (!date.ok() || number(0, 4) < 1970 || number(0, 4) > 2261 || hour > 23 || minute > 59 || second > 60) return {};
  return std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace kiln
