// SPDX-License-Identifier: Apache-2.0
// The work of each operation, and its physical shape: the launches of a run in order, with repetitions collapsed.
#include <algorithm>
#include <unordered_map>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr std::size_t kMaxPeriod = 32;         // launches in one iteration of a collapsed loop
constexpr std::size_t kMaxName = 64;           // characters of a kernel name in a shape
constexpr std::size_t kMaxLaunches = 100'000;  // launches of a run that a shape covers
constexpr std::size_t kMaxTerms = 24;          // terms of a shape; the others are counted
constexpr std::size_t kMaxShapes = 64;         // different shapes that are counted per operation

// The terms of a shape as numbers, so that comparing them is cheap.
class Terms {
 public:
  std::uint32_t number(const std::string& text) {
    const auto [at, fresh] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return at->second;
  }
  const std::string& text(std::uint32_t number) const { return texts_[number]; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
};

using Sequence = std::vector<std::uint32_t>;

// Returns how often the sequence at `from` repeats its first `period` terms.
std::size_t repeats_at(const Sequence& sequence, std::size_t from, std::size_t period) {
  std::size_t end = from + period;
  while (end < sequence.size() && sequence[end] == sequence[end - period]) ++end;
  return (end - from) / period;
}

std::string joined(const Sequence& sequence, std::size_t from, std::size_t count, const Terms& terms) {
  std::string text;
  for (std::size_t i = from; i < from + count; ++i) text += (i == from ? "" : " → ") + terms.text(sequence[i]);
  return text;
}

// Replaces each repetition of this many terms by one term.
Sequence collapsed(const Sequence& sequence, std::size_t period, Terms& terms) {
  Sequence result;
  for (std::size_t at = 0; at < sequence.size();) {
    const std::size_t times = at + 2 * period <= sequence.size() ? repeats_at(sequence, at, period) : 1;
    if (times < 2) {
      result.push_back(sequence[at++]);
      continue;
    }
    const std::string text = joined(sequence, at, period, terms);
    result.push_back(terms.number((period > 1 ? '(' + text + ')' : text) + " ×" + std::to_string(times)));
    at += period * times;
  }
  return result;
}

std::string shape_of(const Run& run) {
  Terms terms;
  Sequence sequence;
  for (const RecordedEvent* event : run.events) {
    if (!is_launch(*event) || sequence.size() >= kMaxLaunches) continue;
    sequence.push_back(terms.number(std::string(truncate_utf8(kernel_of(*event), kMaxName))));
  }
  if (sequence.empty()) {
    const bool copies = std::any_of(run.events.begin(), run.events.end(),
                                    [](const RecordedEvent* event) { return is(*event, Event::Kind::Copied); });
    return copies ? "copies only" : place_of(run) == Place::Processor ? "CPU" : "";
  }
  // Short periods first, so that inner loops are replaced before the loops around them.
  for (std::size_t before = sequence.size() + 1; sequence.size() < before;) {
    before = sequence.size();
    for (std::size_t period = 1; period <= kMaxPeriod && 2 * period <= sequence.size(); ++period) {
      sequence = collapsed(sequence, period, terms);
    }
  }
  const std::size_t shown = std::min(sequence.size(), kMaxTerms);
  std::string text = joined(sequence, 0, shown, terms);
  if (shown < sequence.size()) text += " → … (" + std::to_string(sequence.size() - shown) + " more)";
  return text;
}

void add_run(const Run& run, OperationSum& sum) {
  sum.operation = run.operation;
  sum.implicit = run.implicit && (sum.implicit || sum.runs == 0);
  ++sum.runs;
  switch (place_of(run)) {
    case Place::Processor: ++sum.on_processor; break;
    case Place::CpuDevice: ++sum.on_cpu_device; break;
    case Place::Gpu: ++sum.on_device; break;
  }
  sum.rows = std::max(sum.rows, run.rows);
  for (const RecordedEvent* event : run.events) {
    if (is_launch(*event)) ++sum.launches;
    if (is(*event, Event::Kind::Synchronized) && event->event.context.purpose != Purpose::Trace) ++sum.waits;
    if (is_copy_in(*event)) sum.bytes_in += event->event.bytes;
    if (is_copy_out(*event)) sum.bytes_out += event->event.bytes;
  }
}

}  // namespace

void sum_operations(const View& view, Report& report) {
  struct Entry {
    OperationSum sum;
    std::map<std::string, std::uint64_t> shapes;
  };
  std::map<std::string_view, Entry> operations;
  for (const Run& run : view.runs) {
    Entry& entry = operations[run.operation];
    add_run(run, entry.sum);
    std::string shape = shape_of(run);
    if (!shape.empty() && (entry.shapes.size() < kMaxShapes || entry.shapes.count(shape) != 0)) ++entry.shapes[shape];
  }
  for (auto& [name, entry] : operations) {
    const auto most = std::max_element(entry.shapes.begin(), entry.shapes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != entry.shapes.end()) entry.sum.shape = most->first;
    entry.sum.shapes = entry.shapes.size();
    report.operations.push_back(std::move(entry.sum));
  }
}

}  // namespace kiln::audit
