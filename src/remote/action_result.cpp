// SPDX-License-Identifier: Apache-2.0
#include "remote/action_result.hpp"

#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// The field numbers of build.bazel.remote.execution.v2: ActionResult, OutputFile and Digest.
constexpr std::uint32_t kOutputFiles = 2;
constexpr std::uint32_t kStdoutRaw = 5;
constexpr std::uint32_t kFilePath = 1;
constexpr std::uint32_t kFileDigest = 2;
constexpr std::uint32_t kFileContents = 5;
constexpr std::uint32_t kDigestHash = 1;
constexpr std::uint32_t kDigestSize = 2;

constexpr std::size_t kMaxFiles = 64;

enum Wire : std::uint32_t { Varint = 0, Fixed64 = 1, Delimited = 2, Fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_delimited(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_varint(out, std::uint64_t{field} << 3 | Delimited);
  put_varint(out, bytes.size());
  out += bytes;
}

// Iterates over the fields of one message. After a malformed field, `ok` is false and `next` returns false.
class Fields {
 public:
  explicit Fields(std::span<const std::uint8_t> message) : rest_(message) {}

  bool next() {
    if (!ok_ || rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    wire_ = tag & 7;
    bytes_ = {};
    number_ = 0;
    switch (wire_) {
      case Varint: number_ = varint(); break;
      case Fixed64: (void)take(8); break;
      case Delimited: bytes_ = take(varint()); break;
      case Fixed32: (void)take(4); break;
      default: ok_ = false;  // groups, which this protocol does not use, and invalid wire types
    }
    if (field_ == 0) ok_ = false;
    return ok_;
  }
  // Returns whether the current field has this number. A field with this number must have this wire type.
  bool is(std::uint32_t field, Wire wire) {
    if (field_ != field) return false;
    if (wire_ != wire) ok_ = false;
    return ok_;
  }
  std::uint64_t number() const { return number_; }
  std::span<const std::uint8_t> bytes() const { return bytes_; }
  std::string text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  bool ok() const { return ok_; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const std::uint64_t byte = rest_.front();
      rest_ = rest_.subspan(1);
      if (shift == 63 && byte > 1) break;  // more than 64 bits
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::span<const std::uint8_t> take(std::uint64_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const auto taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  std::span<const std::uint8_t> rest_;
  std::span<const std::uint8_t> bytes_;
  std::uint64_t field_ = 0;
  std::uint64_t wire_ = 0;
  std::uint64_t number_ = 0;
  bool ok_ = true;
};

bool read_digest(std::span<const std::uint8_t> message, ActionResult::File& file) {
  Fields fields(message);
  bool named = false;
  while (fields.next()) {
    if (fields.is(kDigestHash, Delimited)) {
      const std::optional<Digest> digest = Digest::from_hex(fields.text());
      if (!digest) return false;
      file.digest = *digest;
      named = true;
    } else if (fields.is(kDigestSize, Varint)) {
      // The field is an int64 on the wire: a larger value is negative.
      if (fields.number() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
      file.size = fields.number();
    }
  }
  return fields.ok() && named;
}

bool read_file_message(std::span<const std::uint8_t> message, ActionResult::File& file) {
  Fields fields(message);
  bool named = false;
  while (fields.next()) {
    if (fields.is(kFilePath, Delimited)) {
      file.path = fields.text();
    } else if (fields.is(kFileDigest, Delimited)) {
      if (!read_digest(fields.bytes(), file)) return false;
      named = true;
    } else if (fields.is(kFileContents, Delimited)) {
      file.contents = fields.text();
    }
  }
  return fields.ok() && named;
}

}  // namespace

std::string ActionResult::encode() const {
  std::string out;
  for (const File& file : files) {
    std::string digest;
    put_delimited(digest, kDigestHash, file.digest.hex());
    if (file.size != 0) {  // protobuf omits fields that are zero
      put_varint(digest, std::uint64_t{kDigestSize} << 3 | Varint);
      put_varint(digest, file.size);
    }
    std::string message;
    put_delimited(message, kFilePath, file.path);
    put_delimited(message, kFileDigest, digest);
    if (!file.contents.empty()) put_delimited(message, kFileContents, file.contents);
    put_delimited(out, kOutputFiles, message);
  }
  if (!stdout_raw.empty()) put_delimited(out, kStdoutRaw, stdout_raw);
  return out;
}

Result<ActionResult> ActionResult::decode(std::span<const std::uint8_t> body) {
  const auto none = [](const char* reason) {
    return make_error(Code::Corrupt, std::string("invalid ActionResult: ") + reason);
  };
  ActionResult result;
  Fields fields(body);
  while (fields.next()) {
    if (fields.is(kOutputFiles, Delimited)) {
      if (result.files.size() == kMaxFiles) return none("too many files");
      if (!read_file_message(fields.bytes(), result.files.emplace_back())) {
        return none("an output file is malformed or has no SHA-256 digest");
      }
    } else if (fields.is(kStdoutRaw, Delimited)) {
      result.stdout_raw = fields.text();
    }
  }
  if (!fields.ok()) return none("malformed field");
  return result;
}

}  // namespace kiln
