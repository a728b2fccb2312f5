#include "observe/metrics.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace kiln {
namespace {

constexpr std::array<std::string_view, Metrics::kOrigins> kOriginNames = {"",       "memory",   "bundle", "disk",
                                                                          "remote", "compiled", "other"};

// Paths and servers are origins too, and each would be a time series for ever.
std::size_t origin_index(std::string_view origin) {
  const auto* const found = std::find(kOriginNames.begin(), kOriginNames.end(), origin);
  return found != kOriginNames.end() ? static_cast<std::size_t>(found - kOriginNames.begin()) : kOriginNames.size() - 1;
}

// Longer than a year is nobody's duration; not a number is none.
constexpr double kLongestMs = 3e10;
double sane_ms(double ms) { return ms > 0 ? std::min(ms, kLongestMs) : 0; }

void add(std::atomic<std::uint64_t>& count, std::uint64_t what) { count.fetch_add(what, std::memory_order_relaxed); }
std::uint64_t read(const std::atomic<std::uint64_t>& count) { return count.load(std::memory_order_relaxed); }
double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

void heading(std::string& text, const char* name, const char* type, const char* help) {
  text += std::string("# HELP ") + name + ' ' + help + "\n# TYPE " + name + ' ' + type + '\n';
}

// `labels` is empty or {…}.
void sample(std::string& text, const std::string& name, const std::string& labels, std::uint64_t value) {
  text += name + labels + ' ' + std::to_string(value) + '\n';
}
void sample(std::string& text, const std::string& name, const std::string& labels, double value) {
  char number[40];
  std::snprintf(number, sizeof number, "%.9g", value);
  text += name + labels + ' ' + number + '\n';
}

std::string bound_name(double bound) {
  char number[32];
  std::snprintf(number, sizeof number, "%g", bound);
  return number;
}

void append_status(std::string& text, const SessionStatus& status) {
  const auto units = [&text](const char* state, std::size_t count) {
    sample(text, "kiln_units", std::string("{state=\"") + state + "\"}", std::uint64_t{count});
  };
  heading(text, "kiln_units", "gauge", "Units of the session by what has become of them.");
  units("compiled", status.compiled);
  units("found", status.found);
  units("pending", status.pending);
  units("failed", status.failed);
  units("cancelled", status.cancelled);
  heading(text, "kiln_units_submitted", "gauge", "Units that were asked for.");
  sample(text, "kiln_units_submitted", "", std::uint64_t{status.submitted});
  heading(text, "kiln_wall_seconds", "gauge", "From the first request to the end of the last work, or to now.");
  sample(text, "kiln_wall_seconds", "", status.wall_ms / 1e3);
}

}  // namespace

void Metrics::Histogram::add(double duration) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), duration);
  kiln::add(buckets[static_cast<std::size_t>(bound - kBounds.begin())], 1);
  kiln::add(nanoseconds, static_cast<std::uint64_t>(duration * 1e9));
}

void Metrics::tell(const Event& event) {
  const auto kind = static_cast<std::size_t>(event.kind);
  if (kind >= kKinds) return;
  add(events_[kind][origin_index(event.origin)], 1);
  const double ms = sane_ms(event.ms);
  if (ms > 0) add(nanoseconds_[kind], static_cast<std::uint64_t>(ms * 1e6));
  switch (event.kind) {
    case Event::Kind::Compiled: compiles_.add(ms / 1e3); break;
    case Event::Kind::Waited: waits_.add(ms / 1e3); break;
    case Event::Kind::HotCompile: hot_compiles_.add(ms / 1e3); break;
    case Event::Kind::Copied: add(copied_bytes_, event.bytes); break;
    default: break;
  }
}

void Metrics::append(std::string& text, const char* name, const char* help, const Histogram& histogram) {
  heading(text, name, "histogram", help);
  const std::string bucket = std::string(name) + "_bucket";
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    sum += read(histogram.buckets[i]);
    sample(text, bucket, "{le=\"" + bound_name(kBounds[i]) + "\"}", sum);
  }
  sum += read(histogram.buckets.back());
  sample(text, bucket, "{le=\"+Inf\"}", sum);
  sample(text, std::string(name) + "_sum", "", seconds(read(histogram.nanoseconds)));
  sample(text, std::string(name) + "_count", "", sum);
}

void Metrics::append_events(std::string& text) const {
  heading(text, "kiln_events_total", "counter", "Events by kind and, where a tier is concerned, by origin.");
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const std::string label = std::string("{kind=\"") + to_string(static_cast<Event::Kind>(kind)) + '"';
    for (std::size_t origin = 0; origin < kOrigins; ++origin) {
      const std::uint64_t count = read(events_[kind][origin]);
      // The first is there from the beginning, so that a rate has something to begin with.
      if (count == 0 && origin != 0) continue;
      const std::string of = origin == 0 ? "}" : ",origin=\"" + std::string(kOriginNames[origin]) + "\"}";
      sample(text, "kiln_events_total", label + of, count);
    }
  }
  heading(text, "kiln_event_seconds_total", "counter", "How long the events of a kind took, added up.");
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const std::uint64_t spent = read(nanoseconds_[kind]);
    if (spent == 0) continue;
    const std::string label = std::string("{kind=\"") + to_string(static_cast<Event::Kind>(kind)) + "\"}";
    sample(text, "kiln_event_seconds_total", label, seconds(spent));
  }
}

std::string Metrics::text(const SessionStatus& status) const {
  std::string text;
  append_events(text);
  append(text, "kiln_compile_seconds", "How long compiles took that succeeded.", compiles_);
  append(text, "kiln_wait_seconds", "How long another's compile was waited for.", waits_);
  append(text, "kiln_hot_compile_seconds", "How long callers waited for a compile.", hot_compiles_);
  heading(text, "kiln_copied_bytes_total", "counter", "Bytes copied between host and device.");
  sample(text, "kiln_copied_bytes_total", "", read(copied_bytes_));
  append_status(text, status);
  return text;
}

}  // namespace kiln
