// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/compile/warm_report.hpp"

#include <algorithm>

#include "apps/kiln/output/json_common.hpp"

namespace kiln::cli {

std::string WarmReport::device_problem(const std::string& devices) const {
  if (not_for_devices == 0 || !outcomes.empty() || !unmatched.empty() || stored + already_cached > 0) return {};
  return from + " has nothing for the devices of this host (" + devices +
         "); add their architectures to it, or select others with --arch";
}

std::uint64_t WarmReport::failed() const {
  return static_cast<std::uint64_t>(
      std::count_if(outcomes.begin(), outcomes.end(), [](const CompileOutcome& each) { return !each.answer; }));
}

std::uint64_t WarmReport::from_origin(Origin origin) const {
  return static_cast<std::uint64_t>(std::count_if(outcomes.begin(), outcomes.end(), [&](const CompileOutcome& each) {
    return each.answer && each.answer->origin == origin;
  }));
}

std::string WarmReport::text() const {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) parts.push_back(std::to_string(count) + ' ' + what);
  };
  add(already_cached, "already cached");
  add(stored, "stored from " + from);
  for (const Origin origin : kTiers) add(from_origin(origin), std::string("from ") + to_string(origin));
  add(from_origin(Origin::Compiled), "compiled");
  add(failed(), "failed");
  add(unmatched.size(), "not in the manifest");
  add(not_for_devices, "not for the devices of this host");
  const std::uint64_t good = stored + already_cached + outcomes.size() - failed();
  std::string text = std::to_string(good) + " of " + std::to_string(good + failed() + unmatched.size()) + " in " +
                     time_text(seconds * 1e3);
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? ": " : ", ") + parts[i];
  if (published > 0) text += "; " + std::to_string(published) + " published";
  if (dropped > 0) text += "; " + std::to_string(dropped) + " could not be published";
  return text;
}

std::string warm_json(const WarmReport& report) {
  Json hits = Json::object();
  for (const Origin origin : WarmReport::kTiers) hits[to_string(origin)] = report.from_origin(origin);
  Json out{{"from", report.from},
           {"kind", report.kind},
           {"summary",
            {{"hits", std::move(hits)},
             {"compiled", report.from_origin(Origin::Compiled)},
             {"failed", report.failed()},
             {"unmatched", report.unmatched.size()},
             {"stored", report.stored},
             {"already_cached", report.already_cached},
             {"not_for_devices", report.not_for_devices},
             {"published", report.published},
             {"not_published", report.dropped},
             {"seconds", rounded(report.seconds)}}}};
  out.update(to_json(report.outcomes));
  out["unmatched"] = json_array(report.unmatched);
  out["problems"] = report.problems;
  return text_of(out);
}

}  // namespace kiln::cli
