// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/audit_compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/enum_names.hpp"
#include "base/format.hpp"

namespace kiln::audit {
namespace {

// A smaller difference is noise; docs/reference/audit-rules.md.
constexpr double kCountNoise = 0.1;  // of launches, waits, copied bytes and events of a finding, per run
constexpr double kTimeNoise = 0.25;  // of the time of a stage, per run
constexpr double kMinTimeMs = 1;     // difference in the time of a stage, per run
constexpr double kMinBytes = 4096;   // difference in copied bytes, per run
constexpr double kMinCount = 1;      // difference in launches or waits, per run
constexpr double kSameWork = 0.1;    // of the rows of the largest run, and the launches of an implicit operation

using Direction = Change::Direction;

struct Limits {
  double part;
  double minimum;
};

// Returns the direction of a value of which less is better.
Direction direction_of(double before, double after, const Limits& limits) {
  const double difference = std::abs(after - before);
  if (difference < limits.minimum || difference <= limits.part * before) return Direction::Changed;
  return after > before ? Direction::Regressed : Direction::Improved;
}

bool differs(std::uint64_t before, std::uint64_t after) {
  const auto larger = static_cast<double>(std::max(before, after));
  return larger - static_cast<double>(std::min(before, after)) > kSameWork * larger;
}

std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find('.') + 2);
  if (text.ends_with(".0")) text.erase(text.size() - 2);
  return text;
}

class Comparer {
 public:
  Comparer(const Report& before, const Report& after) : before_(before), after_(after) {}

  Comparison run() {
    result_.before = before_.verdict();
    result_.after = after_.verdict();
    result_.lacks_evidence = before_.lacks_evidence() || after_.lacks_evidence();
    pair_operations();
    compare_findings();
    if (!result_.lacks_evidence) compare_stages();
    std::stable_sort(result_.changes.begin(), result_.changes.end(), [](const Change& a, const Change& b) {
      return (a.direction == Direction::Regressed) > (b.direction == Direction::Regressed);
    });
    return std::move(result_);
  }

 private:
  using Pair = std::pair<const OperationSum*, const OperationSum*>;

  void pair_operations() {
    for (const OperationSum& each : before_.operations) pairs_[each.operation].first = &each;
    for (const OperationSum& each : after_.operations) pairs_[each.operation].second = &each;
    for (const auto& [name, pair] : pairs_) {
      if (pair.second == nullptr) result_.only_before.push_back(name);
      if (pair.first == nullptr) result_.only_after.push_back(name);
      if (pair.first != nullptr && pair.second != nullptr && !result_.lacks_evidence)
        compare_operation(*pair.first, *pair.second);
    }
  }

  void compare_operation(const OperationSum& before, const OperationSum& after) {
    compare_place(before, after);
    if (before.shape != after.shape) {
      add(Change::Kind::Shape, Direction::Changed, before.operation, 0, 0,
          "physical shape: " + before.shape + "  became  " + after.shape);
    }
    if (differs(before.rows, after.rows)) {
      result_.other_rows.push_back(before.operation);
      return;
    }
    // An implicit operation is all work of a thread: more launches can be more requests of a server.
    if (before.implicit && after.implicit && differs(before.launches, after.launches)) {
      result_.other_launches.push_back(before.operation);
      return;
    }
    const auto compare = [&](Change::Kind kind, std::uint64_t was, std::uint64_t is, const Limits& limits) {
      compare_number(kind, before, static_cast<double>(was) / static_cast<double>(before.runs),
                     static_cast<double>(is) / static_cast<double>(after.runs), limits);
    };
    compare(Change::Kind::Launches, before.launches, after.launches, {kCountNoise, kMinCount});
    compare(Change::Kind::Waits, before.waits, after.waits, {kCountNoise, kMinCount});
    compare(Change::Kind::BytesIn, before.bytes_in, after.bytes_in, {kCountNoise, kMinBytes});
    compare(Change::Kind::BytesOut, before.bytes_out, after.bytes_out, {kCountNoise, kMinBytes});
  }

  void compare_number(Change::Kind kind, const OperationSum& of, double before, double after, const Limits& limits) {
    const Direction direction = direction_of(before, after, limits);
    if (direction == Direction::Changed) return;
    const bool bytes = kind == Change::Kind::BytesIn || kind == Change::Kind::BytesOut;
    const auto text = [&](double value) {
      return bytes ? format_bytes(static_cast<std::uint64_t>(value)) : number_text(value);
    };
    add(kind, direction, of.operation, before, after,
        std::string(to_string(kind)) + (of.implicit ? ": " : " per run: ") + text(before) + " became " + text(after));
  }

  // Compares the share of the runs on a GPU, then that on any device.
  void compare_place(const OperationSum& before, const OperationSum& after) {
    const auto share = [](std::uint64_t part, const OperationSum& of) {
      return static_cast<double>(part) / static_cast<double>(of.runs);
    };
    const double was = share(before.on_device, before);
    const double is = share(after.on_device, after);
    const double on_any_before = share(before.on_device + before.on_cpu_device, before);
    const double on_any_after = share(after.on_device + after.on_cpu_device, after);
    if (was == is && on_any_before == on_any_after) return;
    const bool worse = is < was || (is == was && on_any_after < on_any_before);
    const auto text = [](const OperationSum& of) {
      return std::to_string(of.on_device) + " on a GPU, " + std::to_string(of.on_cpu_device) + " on a CPU device, " +
             std::to_string(of.on_processor) + " on the CPU";
    };
    add(Change::Kind::Place, worse ? Direction::Regressed : Direction::Improved, before.operation, was, is,
        "runs: " + text(before) + " became " + text(after));
  }

  using FindingKey = std::tuple<std::string, std::string, std::string>;  // rule, operation, subject
  static FindingKey key_of(const Finding& finding) { return {finding.rule->name, finding.operation, finding.subject}; }

  void compare_findings() {
    std::map<FindingKey, const Finding*> old;
    for (const Finding& each : before_.findings) old[key_of(each)] = &each;
    for (const Finding& each : after_.findings) {
      const auto at = old.find(key_of(each));
      if (at == old.end()) {
        add_finding(each, Direction::Regressed, 0, count_per_run(each, after_, each.operation), "new: ");
      } else {
        compare_counts(*at->second, each);
        old.erase(at);
      }
    }
    if (after_.lacks_evidence()) return;  // a finding that is gone may only not have been recorded
    for (const auto& [key, each] : old) {
      add_finding(*each, Direction::Improved, count_per_run(*each, before_, each->operation), 0, "gone: ");
    }
  }

  void compare_counts(const Finding& before, const Finding& after) {
    const double was = count_per_run(before, before_, before.operation);
    const double is = count_per_run(after, after_, after.operation);
    const Direction direction = direction_of(was, is, {kCountNoise, kMinCount});
    if (!is_comparable(after.operation) || direction == Direction::Changed) return;
    add_finding(after, direction, was, is, number_text(was) + " events per run became " + number_text(is) + ": ");
  }

  bool is_comparable(const std::string& operation) const {
    const auto has = [&operation](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), operation) != names.end();
    };
    return !result_.lacks_evidence && !has(result_.other_rows) && !has(result_.other_launches);
  }

  double count_per_run(const Finding& finding, const Report& report, const std::string& operation) const {
    const auto at = pairs_.find(operation);
    const OperationSum* sum = at == pairs_.end() ? nullptr : &report == &before_ ? at->second.first : at->second.second;
    return static_cast<double>(finding.count) / static_cast<double>(sum == nullptr || sum->runs == 0 ? 1 : sum->runs);
  }

  void compare_stages() {
    std::map<std::pair<std::string, std::string>, std::pair<Stage, Stage>> stages;
    for (const StageSum& each : before_.stages) stages[{each.operation, each.stage}].first.add(each);
    for (const StageSum& each : after_.stages) stages[{each.operation, each.stage}].second.add(each);
    for (const auto& [name, pair] : stages) {
      const auto& [before, after] = pair;
      if (before.runs == 0 || after.runs == 0) continue;
      if (before.on_host != after.on_host) {
        add(Change::Kind::Place, after.on_host ? Direction::Regressed : Direction::Improved, name.first, 0, 0,
            std::string("ran on ") + (before.on_host ? "the host" : "the device") + ", now on " +
                (after.on_host ? "the host" : "the device"),
            name.second);
      }
      const Direction direction = direction_of(before.mean(), after.mean(), {kTimeNoise, kMinTimeMs});
      if (!is_comparable(name.first) || direction == Direction::Changed) continue;
      add(Change::Kind::StageTime, direction, name.first, before.mean(), after.mean(),
          "time per run: " + number_text(before.mean()) + " ms became " + number_text(after.mean()) + " ms",
          name.second);
    }
  }

  struct Stage {
    std::uint64_t runs = 0;
    double ms = 0;
    bool on_host = false;  // true if one of its runs was on the host

    void add(const StageSum& sum) {
      runs += sum.runs;
      ms += sum.ms;
      on_host = on_host || sum.where == "host" || sum.where == "cpu";
    }
    double mean() const { return ms / static_cast<double>(runs); }
  };

  void add(Change::Kind kind, Direction direction, const std::string& operation, double before, double after,
           std::string text, const std::string& stage = {}) {
    result_.changes.push_back({kind, direction, operation, stage, nullptr, before, after, std::move(text)});
  }
  void add_finding(const Finding& finding, Direction direction, double before, double after, const std::string& how) {
    add(Change::Kind::Finding, direction, finding.operation, before, after, how + finding.text, finding.stage);
    result_.changes.back().rule = finding.rule;
  }

  const Report& before_;
  const Report& after_;
  std::map<std::string, Pair> pairs_;
  Comparison result_;
};

}  // namespace

const char* to_string(Change::Kind kind) {
  return enum_name<Change::Kind::Shape>(
      kind, {"finding", "place", "launches", "waits", "bytes_in", "bytes_out", "stage_time", "shape"});
}

const char* to_string(Change::Direction direction) {
  return enum_name<Change::Direction::Changed>(direction, {"improved", "regressed", "changed"});
}

bool Comparison::regressed() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.direction == Direction::Regressed; });
}

const Rule* Comparison::worst_finding() const {
  const Rule* worst = nullptr;
  for (const Change& change : changes) {
    if (change.direction != Direction::Regressed || change.rule == nullptr) continue;
    if (worst == nullptr || change.rule->severity > worst->severity) worst = change.rule;
  }
  return worst;
}

Comparison compare_audits(const Report& before, const Report& after) { return Comparer(before, after).run(); }

}  // namespace kiln::audit
