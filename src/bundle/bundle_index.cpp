// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_index.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kiln {

std::vector<BundleRow> index_rows(std::span<const IndexEntry> entries) {
  std::vector<std::pair<std::string, BundleRow>> rows;
  std::unordered_set<std::string> taken;
  std::unordered_map<RequestKey, std::uint32_t> dependency_sets;
  const auto add = [&rows](const BundleRow& row) { rows.emplace_back(encode_row(row).substr(0, kRowPrefix), row); };
  for (const IndexEntry& entry : entries) {
    BundleRow row;
    row.location = entry.artifact;
    row.digest = entry.key.digest;
    row.role = BundleRow::Role::ByKey;
    add(row);
    if (entry.target.form == Form::External) continue;  // it belongs to no unit and read no files known to kiln
    row.digest = entry.unit.digest;
    row.role = BundleRow::Role::ByUnit;
    set_target(row, entry.target);
    if (taken.insert(encode_row(row).substr(0, kRowPrefix)).second) add(row);
    if (!entry.dependency_set) continue;
    BundleRow request;
    request.location = *entry.dependency_set;
    request.digest = entry.request.digest;
    request.role = BundleRow::Role::ByRequest;
    request.number = dependency_sets[entry.request]++;
    add(request);
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<BundleRow> sorted;
  sorted.reserve(rows.size());
  for (auto& [prefix, row] : rows) sorted.push_back(row);
  return sorted;
}

bool is_shippable(const DependencySet& dependency_set) {
  return !dependency_set.empty() && !dependency_set.is_host_specific();
}

}  // namespace kiln
