#include "session/status_format.hpp"

#include <algorithm>
#include <cmath>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/words.hpp"

namespace kiln {
namespace {

constexpr std::string_view kStatusMagic = "KILNSTA1";
constexpr std::uint32_t kStatusVersion = 1;
constexpr std::size_t kLongestCommand = 1024;
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestKind = 64;
constexpr std::size_t kLongestError = 512;
// The lengths and the fixed fields of a unit without a text.
constexpr std::size_t kSmallestUnit = 4 * 4 + 1 + 1 + 8 + 4;

void write_seen(Writer& out, const Glance::Seen& seen) {
  const UnitStatus& unit = seen.status;
  out.text(cut_text(unit.unit, kLongestName))
      .text(cut_text(unit.kind, kLongestKind))
      .text(cut_text(unit.target, kLongestName));
  out.u8(static_cast<std::uint8_t>(unit.state)).u8(static_cast<std::uint8_t>(unit.origin)).f64(unit.ms);
  out.u32(static_cast<std::uint32_t>(seen.waiters)).text(cut_text(unit.error, kLongestError));
}

std::string read_short_text(Reader& in, std::size_t longest) {
  const std::string_view text = in.text();
  if (text.size() > longest) in.fail();
  return std::string(text);
}

double read_time(Reader& in) {
  const double ms = in.f64();
  if (!std::isfinite(ms) || ms < 0) in.fail();
  return ms;
}

Glance::Seen read_seen(Reader& in) {
  Glance::Seen seen;
  seen.status.unit = read_short_text(in, kLongestName);
  seen.status.kind = read_short_text(in, kLongestKind);
  seen.status.target = read_short_text(in, kLongestName);
  const std::uint8_t state = in.u8();
  const std::uint8_t origin = in.u8();
  if (state > static_cast<std::uint8_t>(UnitStatus::State::Cancelled)) in.fail();
  if (origin > static_cast<std::uint8_t>(Origin::Remote)) in.fail();
  if (!in.ok()) return seen;
  seen.status.state = static_cast<UnitStatus::State>(state);
  seen.status.origin = static_cast<Origin>(origin);
  seen.status.ms = read_time(in);
  seen.waiters = in.u32();
  seen.status.error = read_short_text(in, kLongestError);
  return seen;
}

}  // namespace

std::string encode(const ProcessStatus& status) {
  const SessionStatus& sums = status.glance.sums;
  Writer body;
  body.u32(status.pid).u64(status.started).u64(status.name_space).text(cut_text(status.command, kLongestCommand));
  body.u64(static_cast<std::uint64_t>(status.since.count())).u64(static_cast<std::uint64_t>(status.written.count()));
  for (const std::size_t sum :
       {sums.submitted, sums.compiled, sums.found, sums.pending, sums.failed, sums.cancelled, status.glance.waiters}) {
    body.u64(sum);
  }
  body.f64(sums.wall_ms);
  const std::size_t count = std::min(status.glance.units.size(), ProcessStatus::kMostUnits);
  body.u32(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) write_seen(body, status.glance.units[i]);
  Writer out;
  out.raw(kStatusMagic.data(), kStatusMagic.size()).u32(kStatusVersion).u64(xxh3(as_bytes(body.bytes())));
  out.raw(body.bytes().data(), body.bytes().size());
  return std::move(out).bytes();
}

Result<ProcessStatus> decode_status(std::string_view bytes) {
  if (bytes.size() > ProcessStatus::kMostBytes) return failure(Code::Corrupt, "a status that is too long to be one");
  Reader in(bytes);
  if (in.raw(kStatusMagic.size()) != kStatusMagic) return failure(Code::Corrupt, "a status without kiln's mark");
  const std::uint32_t version = in.u32();
  if (in.ok() && version != kStatusVersion) {
    return failure(Code::Unsupported, "a status of format version " + std::to_string(version) +
                                          ", written by another version of kiln: look at it with that one");
  }
  const std::uint64_t checksum = in.u64();
  if (!in.ok() || xxh3(as_bytes(bytes.substr(bytes.size() - in.left()))) != checksum) {
    return failure(Code::Corrupt, "a status that fails its checksum");
  }
  ProcessStatus status;
  status.pid = in.u32();
  status.started = in.u64();
  status.name_space = in.u64();
  status.command = read_short_text(in, kLongestCommand);
  status.since = std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64()));
  status.written = std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64()));
  SessionStatus& sums = status.glance.sums;
  for (std::size_t* sum : {&sums.submitted, &sums.compiled, &sums.found, &sums.pending, &sums.failed, &sums.cancelled,
                           &status.glance.waiters}) {
    *sum = in.u64();
  }
  sums.wall_ms = read_time(in);
  const std::uint32_t count = in.count(kSmallestUnit);
  if (count > ProcessStatus::kMostUnits) in.fail();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) status.glance.units.push_back(read_seen(in));
  if (!in.done()) return failure(Code::Corrupt, "a status that is cut short or has something behind it");
  return status;
}

}  // namespace kiln
