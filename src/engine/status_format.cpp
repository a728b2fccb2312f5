// SPDX-License-Identifier: Apache-2.0
#include "engine/status_format.hpp"

#include <algorithm>
#include <cmath>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/format.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kStatusMagic = "KILNSTA1";
constexpr std::uint32_t kStatusVersion = 1;
constexpr std::size_t kMaxCommandLength = 1024;
constexpr std::size_t kMaxNameLength = 256;
constexpr std::size_t kMaxKindLength = 64;
constexpr std::size_t kMaxErrorLength = 512;
// The lengths and fixed fields of a unit with empty texts.
constexpr std::size_t kMinUnit = 4 * 4 + 1 + 1 + 8 + 4;

void write_seen(BinaryWriter& out, const StatusSnapshot::UnitSnapshot& seen) {
  const UnitStatus& unit = seen.status;
  out.text(truncate_utf8(unit.unit, kMaxNameLength))
      .text(truncate_utf8(unit.kind, kMaxKindLength))
      .text(truncate_utf8(unit.target, kMaxNameLength));
  out.u8(static_cast<std::uint8_t>(unit.state)).u8(static_cast<std::uint8_t>(unit.origin)).f64(unit.ms);
  out.u32(static_cast<std::uint32_t>(seen.waiters)).text(truncate_utf8(unit.error, kMaxErrorLength));
}

std::string read_short_text(BinaryReader& in, std::size_t longest) {
  const std::string_view text = in.text();
  if (text.size() > longest) in.fail();
  return std::string(text);
}

double read_time(BinaryReader& in) {
  const double ms = in.f64();
  if (!std::isfinite(ms) || ms < 0) in.fail();
  return ms;
}

StatusSnapshot::UnitSnapshot read_seen(BinaryReader& in) {
  StatusSnapshot::UnitSnapshot seen;
  seen.status.unit = read_short_text(in, kMaxNameLength);
  seen.status.kind = read_short_text(in, kMaxKindLength);
  seen.status.target = read_short_text(in, kMaxNameLength);
  const std::uint8_t state = in.u8();
  const std::uint8_t origin = in.u8();
  if (state > static_cast<std::uint8_t>(UnitStatus::State::Cancelled)) in.fail();
  if (origin > static_cast<std::uint8_t>(Origin::Remote)) in.fail();
  if (!in.ok()) return seen;
  seen.status.state = static_cast<UnitStatus::State>(state);
  seen.status.origin = static_cast<Origin>(origin);
  seen.status.ms = read_time(in);
  seen.waiters = in.u32();
  seen.status.error = read_short_text(in, kMaxErrorLength);
  return seen;
}

}  // namespace

std::string encode(const ProcessStatus& status) {
  const SessionStatus& sums = status.snapshot.totals;
  BinaryWriter body;
  body.u32(status.pid)
      .u64(status.started)
      .u64(status.name_space)
      .text(truncate_utf8(status.command, kMaxCommandLength));
  body.u64(static_cast<std::uint64_t>(status.since.count())).u64(static_cast<std::uint64_t>(status.written.count()));
  for (const std::size_t sum : {sums.submitted, sums.compiled, sums.cached, sums.pending, sums.failed, sums.cancelled,
                                status.snapshot.waiters}) {
    body.u64(sum);
  }
  body.f64(sums.wall_ms);
  const std::size_t count = std::min(status.snapshot.units.size(), ProcessStatus::kMaxUnits);
  body.u32(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) write_seen(body, status.snapshot.units[i]);
  BinaryWriter out;
  out.raw(kStatusMagic.data(), kStatusMagic.size()).u32(kStatusVersion).u64(xxh3(as_bytes(body.bytes())));
  out.raw(body.bytes().data(), body.bytes().size());
  return std::move(out).bytes();
}

Result<ProcessStatus> decode_status(std::string_view bytes) {
  if (bytes.size() > ProcessStatus::kMaxBytes) return make_error(Code::Corrupt, "invalid status: too long");
  BinaryReader in(bytes);
  if (in.raw(kStatusMagic.size()) != kStatusMagic) return make_error(Code::Corrupt, "invalid status: wrong magic");
  const std::uint32_t version = in.u32();
  if (in.ok() && version != kStatusVersion) {
    return make_error(Code::Unsupported, "the status has format version " + std::to_string(version) +
                                             ", written by another version of kiln: read it with that version");
  }
  const std::uint64_t checksum = in.u64();
  if (!in.ok() || xxh3(as_bytes(bytes.substr(bytes.size() - in.left()))) != checksum) {
    return make_error(Code::Corrupt, "invalid status: checksum mismatch");
  }
  ProcessStatus status;
  status.pid = in.u32();
  status.started = in.u64();
  status.name_space = in.u64();
  status.command = read_short_text(in, kMaxCommandLength);
  status.since = std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64()));
  status.written = std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64()));
  SessionStatus& sums = status.snapshot.totals;
  for (std::size_t* sum : {&sums.submitted, &sums.compiled, &sums.cached, &sums.pending, &sums.failed, &sums.cancelled,
                           &status.snapshot.waiters}) {
    *sum = in.u64();
  }
  sums.wall_ms = read_time(in);
  const std::uint32_t count = in.count(kMinUnit);
  if (count > ProcessStatus::kMaxUnits) in.fail();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) status.snapshot.units.push_back(read_seen(in));
  if (!in.at_end()) return make_error(Code::Corrupt, "invalid status: truncated or with trailing bytes");
  return status;
}

}  // namespace kiln
