// SPDX-License-Identifier: Apache-2.0
#include "cache/activity_format.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/codec.hpp"
#include "base/format.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNACT1";
constexpr std::uint32_t kVersion = 1;

std::optional<Activity> decode_record(std::span<const std::uint8_t> record) {
  BinaryReader in(record);
  if (in.raw(kMagic.size()) != kMagic || in.u32() != kVersion) return std::nullopt;
  Activity activity;
  activity.day = in.u32();
  const std::string_view name = in.raw(kActivityProgram);
  activity.program = name.substr(0, name.find('\0'));
  for (std::uint64_t* field :
       {&activity.bundle, &activity.disk, &activity.remote, &activity.compiled, &activity.failed, &activity.saved_ms}) {
    *field = in.u64();
  }
  const std::uint64_t checksum = in.u64();
  // The rest of the name is zero, so that one record has one encoding.
  const bool is_padded = name.find_first_not_of('\0', activity.program.size()) == std::string_view::npos;
  if (!in.ok() || !is_padded || checksum != xxh3(record.first(kActivityRecord - 8))) return std::nullopt;
  return activity;
}

}  // namespace

std::string encode_activity(const Activity& activity) {
  std::string name(truncate_utf8(activity.program, kActivityProgram));
  name.resize(kActivityProgram, '\0');
  BinaryWriter out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(activity.day).raw(name.data(), name.size());
  out.u64(activity.bundle).u64(activity.disk).u64(activity.remote);
  out.u64(activity.compiled).u64(activity.failed).u64(activity.saved_ms);
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

std::vector<Activity> decode_activities(std::span<const std::uint8_t> file) {
  std::vector<Activity> records;
  while (file.size() >= kActivityRecord) {
    if (auto record = decode_record(file.first(kActivityRecord))) {
      records.push_back(std::move(*record));
      file = file.subspan(kActivityRecord);
      continue;
    }
    // A crash can leave a part of a record: the next one starts at its magic.
    const auto next = std::search(file.begin() + 1, file.end(), kMagic.begin(), kMagic.end());
    file = file.subspan(static_cast<std::size_t>(next - file.begin()));
  }
  return records;
}

std::vector<Activity> sum_activities(const std::vector<Activity>& records) {
  std::map<std::pair<std::uint32_t, std::string>, Activity> sums;
  for (const Activity& each : records) {
    Activity& sum = sums[{UINT32_MAX - each.day, each.program}];
    sum.day = each.day;
    sum.program = each.program;
    sum.bundle += each.bundle;
    sum.disk += each.disk;
    sum.remote += each.remote;
    sum.compiled += each.compiled;
    sum.failed += each.failed;
    sum.saved_ms += each.saved_ms;
  }
  std::vector<Activity> all;
  for (auto& [key, sum] : sums) all.push_back(std::move(sum));
  return all;
}

}  // namespace kiln
