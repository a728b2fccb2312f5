// SPDX-License-Identifier: Apache-2.0
#include "events/metrics.hpp"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>

namespace kiln {
namespace {

constexpr std::array<std::string_view, Metrics::kOrigins> kOriginNames = {"",       "memory",   "bundle", "disk",
                                                                          "remote", "compiled", "other"};

// Maps unknown names to the last name: paths, server names and other free text would each create a time series.
std::size_t index_of(std::span<const std::string_view> names, std::string_view word) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end() - 1, word) - names.begin());
}

// Returns whether a name of an extension can be a label: an arbitrary text would have to be escaped.
bool is_label(std::string_view name) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed);
}

// Durations above a year are clamped; NaN counts as zero.
constexpr double kMaxMs = 3e10;
double clamp_ms(double ms) { return ms > 0 ? std::min(ms, kMaxMs) : 0; }

void add(std::atomic<std::uint64_t>& count, std::uint64_t what) { count.fetch_add(what, std::memory_order_relaxed); }
std::uint64_t read(const std::atomic<std::uint64_t>& count) { return count.load(std::memory_order_relaxed); }
double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

void heading(std::string& text, const char* name, const char* type, const char* help) {
  text += std::string("# HELP ") + name + ' ' + help + "\n# TYPE " + name + ' ' + type + '\n';
}

// `labels` is empty or `{…}`.
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

// Returns `outcome="finished"`.
std::string label(const char* name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + '"';
}

void append_status(std::string& text, const SessionStatus& status) {
  const auto units = [&text](const char* state, std::size_t count) {
    sample(text, "kiln_units", std::string("{state=\"") + state + "\"}", std::uint64_t{count});
  };
  heading(text, "kiln_units", "gauge", "Units of the session by state.");
  units("compiled", status.compiled);
  units("cached", status.cached);
  units("pending", status.pending);
  units("failed", status.failed);
  units("cancelled", status.cancelled);
  heading(text, "kiln_units_submitted", "gauge", "Units that were requested.");
  sample(text, "kiln_units_submitted", "", std::uint64_t{status.submitted});
  heading(text, "kiln_session_wall_seconds", "gauge",
          "Time from the first request to the end of the last task, or to now.");
  sample(text, "kiln_session_wall_seconds", "", status.wall_ms / 1e3);
}

}  // namespace

void Metrics::Histogram::add(double duration) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), duration);
  kiln::add(buckets[static_cast<std::size_t>(bound - kBounds.begin())], 1);
  kiln::add(nanoseconds, static_cast<std::uint64_t>(duration * 1e9));
}

void Metrics::KindCounts::add(const Event& event) {
  kiln::add(events[index_of(kOriginNames, event.origin)], 1);
  const double ms = clamp_ms(event.ms);
  if (ms > 0) kiln::add(nanoseconds, static_cast<std::uint64_t>(ms * 1e6));
}

Metrics::KindCounts& Metrics::extension_counts(const Event& event) {
  const std::string other(kOriginNames.back());
  std::pair type = {event.category, event.name};
  const MutexLock lock(mutex_);
  const bool full = extensions_.size() >= kMaxExtensions && extensions_.count(type) == 0;
  if (full || !is_label(type.first) || !is_label(type.second)) type = {other, other};
  return extensions_[std::move(type)];
}

void Metrics::on_event(const Event& event) {
  const auto kind = static_cast<std::size_t>(event.kind);
  if (event.kind == Event::Kind::Extension) extension_counts(event).add(event);
  if (kind >= kKinds) return;
  kinds_[kind].add(event);
  const double ms = clamp_ms(event.ms);
  switch (event.kind) {
    case Event::Kind::Compiled: compiles_.add(ms / 1e3); break;
    case Event::Kind::ClaimWaited: waits_.add(ms / 1e3); break;
    case Event::Kind::BlockingCompile: blocking_compiles_.add(ms / 1e3); break;
    case Event::Kind::Copied: add(copied_bytes_, event.bytes); break;
    default: count_fleet_event(event); break;
  }
}

void Metrics::count_fleet_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::Hit:
      if (event.origin == kServers.back()) mark_server_up(kServers.back());
      break;
    case Event::Kind::LeaseWaited:
      lease_waits_[index_of(kWaitOutcomes, event.selected)].add(clamp_ms(event.ms) / 1e3);
      mark_server_up(kServers.front());
      break;
    case Event::Kind::RemoteRejected:
      add(failures_[index_of(kRejectionReasons, event.selected)], 1);
      mark_server_up(kServers.back());
      break;
    case Event::Kind::Uploaded:
      add(uploaded_bytes_, event.bytes);
      mark_server_up(kServers.back());
      break;
    case Event::Kind::RemoteUnavailable:
      servers_[index_of(kServers, event.origin)].store(Server::Down, std::memory_order_relaxed);
      break;
    case Event::Kind::RemoteRecovered:
      servers_[index_of(kServers, event.origin)].store(Server::Up, std::memory_order_relaxed);
      break;
    default: break;
  }
}

// A response to a request from before the circuit opened can arrive after it; only the guard reports recovery.
void Metrics::mark_server_up(std::string_view server) {
  Server unknown = Server::Unknown;
  servers_[index_of(kServers, server)].compare_exchange_strong(unknown, Server::Up, std::memory_order_relaxed);
}

void Metrics::append(std::string& text, const char* name, const char* help, const Histogram& histogram) {
  heading(text, name, "histogram", help);
  append_buckets(text, name, {}, histogram);
}

void Metrics::append_buckets(std::string& text, const char* name, const std::string& label,
                             const Histogram& histogram) {
  const std::string bucket = std::string(name) + "_bucket";
  const std::string before = label.empty() ? "{" : '{' + label + ',';
  const std::string alone = label.empty() ? "" : '{' + label + '}';
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    sum += read(histogram.buckets[i]);
    sample(text, bucket, before + "le=\"" + bound_name(kBounds[i]) + "\"}", sum);
  }
  sum += read(histogram.buckets.back());
  sample(text, bucket, before + "le=\"+Inf\"}", sum);
  sample(text, std::string(name) + "_sum", alone, seconds(read(histogram.nanoseconds)));
  sample(text, std::string(name) + "_count", alone, sum);
}

std::vector<std::pair<std::string, const Metrics::KindCounts*>> Metrics::labeled_counts() const {
  std::vector<std::pair<std::string, const KindCounts*>> all;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    all.emplace_back(label("kind", to_string(static_cast<Event::Kind>(kind))), &kinds_[kind]);
  }
  const MutexLock lock(mutex_);
  for (const auto& [type, counts] : extensions_) {
    all.emplace_back(label("kind", type.second) + ',' + label("category", type.first), &counts);
  }
  return all;
}

void Metrics::append_events(std::string& text) const {
  const auto all = labeled_counts();
  heading(text, "kiln_events_total", "counter", "Events by kind and, for tiers, by origin.");
  for (const auto& [labels, counts] : all) {
    for (std::size_t origin = 0; origin < kOrigins; ++origin) {
      const std::uint64_t count = read(counts->events[origin]);
      // The first sample is always written, so that a rate has a starting value.
      if (count == 0 && origin != 0) continue;
      const std::string of = origin == 0 ? "" : ',' + label("origin", kOriginNames[origin]);
      sample(text, "kiln_events_total", '{' + labels + of + '}', count);
    }
  }
  heading(text, "kiln_event_seconds_total", "counter", "Total duration of the events of a kind.");
  for (const auto& [labels, counts] : all) {
    const std::uint64_t spent = read(counts->nanoseconds);
    if (spent != 0) sample(text, "kiln_event_seconds_total", '{' + labels + '}', seconds(spent));
  }
}

void Metrics::append_fleet(std::string& text) const {
  const auto total = [&](Event::Kind kind) {
    std::uint64_t sum = 0;
    for (const Count& count : kinds_[static_cast<std::size_t>(kind)].events) sum += read(count);
    return sum;
  };
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    heading(text, name, "counter", help);
    sample(text, name, "", value);
  };
  heading(text, "kiln_lease_wait_seconds", "histogram", "Time spent waiting for another host, by outcome.");
  for (std::size_t i = 0; i < kWaitOutcomes.size(); ++i) {
    append_buckets(text, "kiln_lease_wait_seconds", label("outcome", kWaitOutcomes[i]), lease_waits_[i]);
  }
  counter("kiln_hedges_total", "Compiles started because the lease holder took too long.", total(Event::Kind::Hedged));
  counter("kiln_leases_lost_total", "Leases that expired while this host compiled.", total(Event::Kind::LeaseLost));
  heading(text, "kiln_remote_rejected_total", "counter", "Remote entries that failed verification, by reason.");
  for (std::size_t i = 0; i < kRejectionReasons.size(); ++i) {
    sample(text, "kiln_remote_rejected_total", '{' + label("reason", kRejectionReasons[i]) + '}', read(failures_[i]));
  }
  heading(text, "kiln_remote_up", "gauge", "Whether a server is in use: 0 while its circuit is open.");
  for (std::size_t i = 0; i < kServers.size(); ++i) {
    const Server state = servers_[i].load(std::memory_order_relaxed);
    if (state == Server::Unknown) continue;
    sample(text, "kiln_remote_up", '{' + label("server", kServers[i]) + '}',
           std::uint64_t{state == Server::Up ? 1U : 0U});
  }
  counter("kiln_uploads_total", "Artifacts uploaded to the remote store.", total(Event::Kind::Uploaded));
  counter("kiln_uploaded_bytes_total", "Bytes uploaded to the remote store.", read(uploaded_bytes_));
  counter("kiln_uploads_dropped_total", "Artifacts that were not uploaded.", total(Event::Kind::UploadDropped));
}

std::string Metrics::text(const SessionStatus& status) const {
  std::string text;
  append_events(text);
  append(text, "kiln_compile_seconds", "Duration of successful compiles.", compiles_);
  append(text, "kiln_claim_wait_seconds", "Time spent waiting for a compile of another process.", waits_);
  append(text, "kiln_blocking_compile_seconds", "Time that callers waited for a compile.", blocking_compiles_);
  heading(text, "kiln_copied_bytes_total", "counter", "Bytes copied between host and device.");
  sample(text, "kiln_copied_bytes_total", "", read(copied_bytes_));
  append_fleet(text);
  append_status(text, status);
  return text;
}

}  // namespace kiln
