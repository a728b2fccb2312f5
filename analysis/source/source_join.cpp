// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/source_join.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

namespace kiln::source {
namespace {

constexpr std::size_t kMaxDistance = 1000;  // events between a copy and the launch next to it

// Returns the name of a kernel as a source has it.
std::string kernel_name(const std::string& recorded) {
  if (!recorded.starts_with("_Z")) return std::string(base_name(recorded));
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(recorded.c_str(), nullptr, nullptr, &status), &std::free);
  return std::string(base_name(status == 0 && name ? name.get() : recorded));
}

bool is_launch(const audit::RecordedEvent& event) { return event.event.kind == Event::Kind::Launched; }

// Adds the kernel of a launch, or the kernels that the same thread launched before and after another event.
void add_kernels(const audit::Trace& trace, std::uint64_t id, std::set<std::string>& to) {
  const auto found =
      std::lower_bound(trace.events.begin(), trace.events.end(), id,
                       [](const audit::RecordedEvent& event, std::uint64_t at) { return event.id < at; });
  if (found == trace.events.end() || found->id != id) return;
  if (is_launch(*found)) {
    to.insert(kernel_name(found->event.message));
    return;
  }
  const auto at = found - trace.events.begin();
  for (const std::ptrdiff_t step : {-1, 1}) {
    auto next = at + step;
    for (std::size_t i = 0; i < kMaxDistance && next >= 0 && next < std::ssize(trace.events); ++i, next += step) {
      const audit::RecordedEvent& event = trace.events[static_cast<std::size_t>(next)];
      if (!is_launch(event) || event.thread != found->thread) continue;
      to.insert(kernel_name(event.event.message));
      break;
    }
  }
}

// Returns whether a hit can be the cause of a finding of this check.
bool concerns(const Hit& hit, audit::Check check) {
  switch (check) {
    case audit::Check::RanOnDevice:
    case audit::Check::StayedOnDevice:
      return hit.rail == Rail::HostRead || hit.rail == Rail::Materialization || hit.rail == Rail::DeviceRangeLoop;
    case audit::Check::NoSynchronization: return hit.rail == Rail::Synchronization || hit.rail == Rail::HostRead;
    case audit::Check::NoHostBatching: return hit.loops > 0;
    case audit::Check::LaunchShape: return hit.rail == Rail::LaunchShape || hit.rail == Rail::AllocationInLoop;
    case audit::Check::TraceComplete: break;
  }
  return false;
}

template <class T>
std::uint32_t index_in(const std::vector<T>& sorted, const T& value) {
  return static_cast<std::uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
}

}  // namespace

TraceJoin::TraceJoin(const audit::Trace& trace, const audit::Report& report) : report_(report) {
  std::set<std::string> launched;
  for (const audit::RecordedEvent& event : trace.events) {
    if (is_launch(event)) launched.insert(kernel_name(event.event.message));
  }
  std::vector<std::set<std::string>> kernels(report.findings.size());
  std::set<std::string> all;
  std::set<std::string> operations;
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const audit::Finding& finding = report.findings[i];
    if (const std::string name = kernel_name(finding.subject); launched.contains(name)) kernels[i].insert(name);
    for (const std::uint64_t id : finding.events) add_kernels(trace, id, kernels[i]);
    kernels[i].erase("");
    all.insert(kernels[i].begin(), kernels[i].end());
    if (!finding.operation.empty()) operations.insert(finding.operation);
  }
  names_ = {{all.begin(), all.end()}, {operations.begin(), operations.end()}};
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    Names names;
    for (const std::string& kernel : kernels[i]) names.kernels.push_back(index_in(names_.kernels, kernel));
    const std::string& operation = report.findings[i].operation;
    if (!operation.empty()) names.operation = index_in(names_.operations, operation);
    findings_.push_back(std::move(names));
  }
}

std::string TraceJoin::reason(const Hit& hit, const Names& names, const SourceReport& in) const {
  const auto has = [](const std::vector<std::uint32_t>& sorted, std::uint32_t index) {
    return std::binary_search(sorted.begin(), sorted.end(), index);
  };
  for (const std::uint32_t kernel : names.kernels) {
    if (has(hit.mentions.kernels, kernel)) return "the function names the kernel " + names_.kernels[kernel];
  }
  if (names.operation == UINT32_MAX) return {};
  const std::string& operation = names_.operations[names.operation];
  if (has(hit.mentions.operations, names.operation)) return "the function declares the operation " + operation;
  const std::pair<std::uint32_t, std::string> implementation(names.operation, base_name(hit.function));
  if (!hit.function.empty() &&
      std::binary_search(in.implementations.begin(), in.implementations.end(), implementation)) {
    return "the declaration of the operation " + operation + " names the function";
  }
  return {};
}

void TraceJoin::apply(SourceReport& to) const {
  std::sort(to.implementations.begin(), to.implementations.end());
  for (Hit& hit : to.hits) {
    hit.findings.clear();
    for (std::size_t i = 0; i < findings_.size(); ++i) {
      if (!concerns(hit, report_.findings[i].rule->step)) continue;
      std::string why = reason(hit, findings_[i], to);
      if (!why.empty()) hit.findings.push_back({i, std::move(why)});
    }
  }
  std::sort(to.hits.begin(), to.hits.end(), ranks_before);
}

}  // namespace kiln::source
