// SPDX-License-Identifier: Apache-2.0
#include "remote/http/http_listing.hpp"

#include <charconv>
#include <cstdint>
#include <string>

#include "base/json.hpp"

namespace kiln {
namespace {

/// A streaming parser of listing rows: it builds no tree, even for a bucket with a million files.
class Rows final : public JsonReader {
 public:
  std::vector<ObjectStore::ObjectInfo> take() { return std::move(rows_); }

  bool null() override { return inside_; }
  bool boolean(bool) override { return inside_; }
  bool number_integer(number_integer_t) override { return inside_; }
  bool number_unsigned(number_unsigned_t value) override {
    if (key_ == "size") row_.bytes = value;
    return inside_;
  }
  bool number_float(number_float_t, const string_t&) override { return inside_; }
  bool string(string_t& value) override {
    if (key_ == "name") name_ = Digest::from_hex(value);
    if (key_ == "type") file_ = value == "file";
    if (key_ == "mtime") row_.modified = parse_http_date(value);
    return inside_;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    row_ = {};
    name_.reset();
    file_ = false;
    const bool first = array_ && !inside_;  // a row contains no objects
    inside_ = true;
    return first;
  }
  bool key(string_t& value) override {
    key_ = value;
    return true;
  }
  bool end_object() override {
    key_.clear();
    inside_ = false;
    if (name_ && file_) {
      row_.name = *name_;
      rows_.push_back(row_);
    }
    return true;
  }
  bool start_array(std::size_t) override {
    const bool first = !array_;
    array_ = true;
    return first;
  }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const SortedJson::exception&) override { return false; }

 private:
  std::vector<ObjectStore::ObjectInfo> rows_;
  ObjectStore::ObjectInfo row_;
  std::optional<Digest> name_;
  bool file_ = false;
  bool array_ = false;   // the outermost array has started
  bool inside_ = false;  // in a row
  std::string key_;
};

/// Reads exactly `digits` digits at `at`. Returns -1 if they are not all digits.
int number_at(std::string_view text, std::size_t at, std::size_t digits) {
  int value = -1;
  const char* const end = text.data() + at + digits;
  const auto [stopped, error] = std::from_chars(text.data() + at, end, value);
  return error == std::errc() && stopped == end && value >= 0 ? value : -1;
}

}  // namespace

std::chrono::nanoseconds parse_http_date(std::string_view text) {
  // Sun, 15 Nov 2026 21:53:31 GMT
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT") || text[3] != ',' || text[19] != ':' || text[22] != ':') return {};
  const std::size_t month = kMonths.find(text.substr(8, 3));
  const int day = number_at(text, 5, 2);
  const int year = number_at(text, 12, 4);
  const int hour = number_at(text, 17, 2);
  const int minute = number_at(text, 20, 2);
  const int second = number_at(text, 23, 2);
  if (month == std::string_view::npos || month % 3 != 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59)
    return {};
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month) / 3 + 1),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // Nanoseconds since 1970 end in the year 2262.
  if (!date.ok() || second < 0 || second > 60 || year < 1970 || year > 2261) return {};
  return std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

std::optional<std::vector<ObjectStore::ObjectInfo>> parse_listing(std::string_view text) {
  Rows rows;
  if (!parse_json(text, rows)) return std::nullopt;
  return rows.take();
}

}  // namespace kiln
