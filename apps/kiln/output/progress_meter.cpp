// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/progress_meter.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kUnnoticed = 500ms;
constexpr std::size_t kBar = 20;
// Minimum number of columns for a line with a bar.
constexpr std::size_t kMinForBar = 72;
// Minimum number of columns for a line with the prefix `kiln: `.
constexpr std::size_t kMinForWho = 48;
// Minimum number of columns for the current item.
constexpr std::size_t kMinForName = 8;

double in_seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string bar_text(std::size_t done, std::size_t all) {
  const std::size_t full = all == 0 ? 0 : std::min(done, all) * kBar / all;
  return '[' + std::string(full, '#') + std::string(kBar - full, '.') + "] ";
}

std::string rate_text(std::size_t done, double passed) {
  const double rate = static_cast<double>(done) / passed;
  char text[32];
  if (rate >= 1) {
    std::snprintf(text, sizeof text, rate < 10 ? "%.1f/s" : "%.0f/s", rate);
  } else {
    std::snprintf(text, sizeof text, "%.0f/min", rate * 60);
  }
  return text;
}

// Returns the number of bytes of the code point at `at`; fewer if the text is truncated.
std::size_t bytes_of(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end - at;
}

// East Asian characters and emoji take two columns. Most of them are encoded with a lead byte of E3 or higher.
std::size_t columns_of_point(unsigned char lead) { return lead >= 0xE3 ? 2 : 1; }

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); i += bytes_of(text, i)) {
    columns += columns_of_point(static_cast<unsigned char>(text[i]));
  }
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t used = 1;  // for the ellipsis
  std::size_t end = 0;
  while (end < text.size()) {
    used += columns_of_point(static_cast<unsigned char>(text[end]));
    if (used > columns) break;
    end += bytes_of(text, end);
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string rough_time_text(std::chrono::nanoseconds time) {
  const double all = std::max(1.0, std::ceil(in_seconds(time)));
  // Round the estimate: more digits would suggest too much accuracy, and would flicker.
  const double rounded = all < 10 ? all : all < 90 ? std::ceil(all / 5) * 5 : all;
  char text[32];
  if (rounded < 90) {
    std::snprintf(text, sizeof text, "about %.0f s", rounded);
  } else if (rounded < 5400) {
    std::snprintf(text, sizeof text, "about %.0f min", rounded / 60);
  } else {
    std::snprintf(text, sizeof text, "about %.1f h", rounded / 3600);
  }
  return text;
}

ProgressMeter::ProgressMeter(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), start_(clock.steady()) {}

void ProgressMeter::step(double cost) {
  ++done_;
  done_cost_ += cost;
}

void ProgressMeter::set(std::size_t done, std::size_t all) {
  done_ = done;
  options_.all = all;
}

bool ProgressMeter::is_due() const { return passed() >= kUnnoticed; }

std::optional<std::chrono::nanoseconds> ProgressMeter::remaining() const {
  if (done_ == 0 || options_.all == 0 || done_ >= options_.all) return std::nullopt;
  const bool weighed = options_.all_cost > 0 && done_cost_ > 0 && done_cost_ < options_.all_cost;
  const double behind =
      weighed ? done_cost_ / options_.all_cost : static_cast<double>(done_) / static_cast<double>(options_.all);
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(passed().count()) * (1 - behind) / behind));
}

std::string ProgressMeter::line(std::size_t columns) const {
  const bool counts = !options_.noun.empty() && (options_.all > 0 || done_ > 0);
  std::string line = (columns < kMinForWho ? "" : "kiln: ") + options_.doing;
  std::string figures;
  if (counts) {
    figures = std::to_string(done_);
    if (options_.all > 0) figures += '/' + std::to_string(options_.all);
    figures += ' ' + options_.noun;
  }
  const double passed_seconds = in_seconds(passed());
  const std::string rate = counts && done_ > 0 && passed_seconds > 0 ? ", " + rate_text(done_, passed_seconds) : "";
  const auto time = remaining();
  char so_far[32];
  std::snprintf(so_far, sizeof so_far, "%.0f s so far", passed_seconds);
  const std::string clock = (counts ? ", " : "") + (time ? rough_time_text(*time) + " left" : std::string(so_far));
  const bool bar = options_.all > 0 && counts && columns >= kMinForBar;
  line += ' ' + (bar ? bar_text(done_, options_.all) : std::string()) + figures;
  if (columns_of(line) + columns_of(rate) + columns_of(clock) <= columns) line += rate;
  line += clock;
  if (!at_.empty() && columns_of(line) + 2 + kMinForName <= columns) line += ": " + at_;
  return cut_to(line, columns);
}

}  // namespace kiln::cli
