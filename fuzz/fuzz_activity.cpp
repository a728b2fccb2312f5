// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hash.hpp"
#include "cache/activity_format.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<kiln::Activity> records = kiln::decode_activities({data, size});
  kiln::fuzz::require(records.size() <= size / kiln::kActivityRecord, "no more records than fit");
  std::string again;
  for (const kiln::Activity& record : records) again += kiln::encode_activity(record);
  kiln::fuzz::require(kiln::decode_activities(kiln::as_bytes(again)) == records, "records round-trip");
  kiln::fuzz::require(kiln::sum_activities(records).size() <= records.size(), "sums are not more than records");
  // A part of a record before a record does not hide it.
  const kiln::Activity whole{1, "app", 1, 2, 3, 4, 5, 6};
  const std::string torn(reinterpret_cast<const char*>(data), size % kiln::kActivityRecord);
  const auto found = kiln::decode_activities(kiln::as_bytes(torn + kiln::encode_activity(whole)));
  kiln::fuzz::require(!found.empty() && found.back() == whole, "a record after a torn one is found");
  return 0;
}
