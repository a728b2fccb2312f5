// SPDX-License-Identifier: Apache-2.0
#include "bundle/tar.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/error.hpp"

namespace kiln {
namespace {

using Block = std::array<char, kTarBlock>;

struct Field {
  std::size_t offset;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUser{108, 8};
constexpr Field kGroup{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kSum{148, 8};
constexpr Field kType{156, 1};
constexpr Field kMark{257, 8};
constexpr Field kDeviceMajor{329, 8};
constexpr Field kDeviceMinor{337, 8};
constexpr std::size_t kEndBlocks = 2;

void put(Block& block, Field field, std::string_view text) { text.copy(block.data() + field.offset, field.size); }

/// Writes octal digits that fill the field, and a zero byte.
void put_number(Block& block, Field field, std::uint64_t number) {
  for (std::size_t at = field.offset + field.size - 1; at-- > field.offset; number >>= 3) {
    block[at] = static_cast<char>('0' + (number & 7));
  }
}

Block header(std::string_view name, std::uint64_t size, bool directory) {
  Block block{};
  put(block, kName, name);
  put_number(block, kMode, directory ? 0555 : 0444);
  put_number(block, kUser, 0);
  put_number(block, kGroup, 0);
  put_number(block, kSize, size);
  put_number(block, kTime, 0);
  put(block, kType, directory ? "5" : "0");
  put(block, kMark, std::string_view("ustar\00000", 8));
  put_number(block, kDeviceMajor, 0);
  put_number(block, kDeviceMinor, 0);
  // The checksum is computed with blanks in its place. It has six digits, a zero byte and a blank.
  put(block, kSum, "        ");
  std::uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put_number(block, {kSum.offset, kSum.size - 1}, sum);
  block[kSum.offset + kSum.size - 2] = '\0';
  return block;
}

std::string_view view(const Block& block) { return {block.data(), block.size()}; }

std::size_t padding(std::uint64_t size) { return (kTarBlock - size % kTarBlock) % kTarBlock; }

bool all_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

/// Returns the file described by a header if the header is exactly what kiln would write for it.
std::optional<TarFile> read_header(std::string_view block) {
  TarFile file;
  const std::string_view name = block.substr(kName.offset, kName.size);
  file.name = name.substr(0, name.find('\0'));
  for (const char c : block.substr(kSize.offset, kSize.size - 1)) {
    if (c < '0' || c > '7') return std::nullopt;
    file.size = file.size << 3 | static_cast<std::uint64_t>(c - '0');
  }
  if (view(header(file.name, file.size, false)) != block) return std::nullopt;
  return file;
}

}  // namespace

Result<std::string> write_tar(const std::string& directory, std::initializer_list<TarInput> files) {
  if (files.size() > kMaxTarFiles) return make_error(Code::InvalidArgument, "too many files for one layer");
  std::string out(view(header(directory, 0, true)));
  for (const TarInput& file : files) {
    if (file.name.empty() || file.name.size() > kName.size || file.bytes.size() > kMaxTarFileBytes) {
      return make_error(Code::InvalidArgument, file.name + " does not fit into a tar file: it has " +
                                                   std::to_string(file.bytes.size()) + " bytes, the limit is " +
                                                   std::to_string(kMaxTarFileBytes));
    }
    out += view(header(file.name, file.bytes.size(), false));
    out += file.bytes;
    out.append(padding(file.bytes.size()), '\0');
  }
  out.append(kEndBlocks * kTarBlock, '\0');
  return out;
}

std::uint64_t tar_size(std::initializer_list<std::uint64_t> sizes) {
  std::uint64_t total = (1 + kEndBlocks) * kTarBlock;
  for (const std::uint64_t size : sizes) total += kTarBlock + size + padding(size);
  return total;
}

namespace {

class MemoryStream final : public ArchiveStream {
 public:
  explicit MemoryStream(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::uint64_t left() const override { return rest_.size(); }
  Status read(std::span<char> out) override {
    std::memcpy(out.data(), rest_.data(), out.size());
    return skip(out.size());
  }
  Status skip(std::uint64_t size) override {
    rest_ = rest_.subspan(size);
    return {};
  }

 private:
  std::span<const std::uint8_t> rest_;
};

Error corrupt(std::uint64_t at, const char* what) {
  return make_error(Code::Corrupt, "the tar file is corrupt at byte " + std::to_string(at) + ": " + what);
}

}  // namespace

Result<std::vector<TarFile>> read_tar(ArchiveStream& archive, const std::string& directory) {
  const std::uint64_t size = archive.left();
  Block block{};
  if (size >= kTarBlock) {
    if (Status read = archive.read(block); !read) return std::move(read).error();
  }
  if (view(block) != view(header(directory, 0, true))) return corrupt(0, "it does not start with its directory");
  std::vector<TarFile> files;
  while (true) {
    const std::uint64_t at = size - archive.left();
    if (archive.left() < kTarBlock) return corrupt(at, "unexpected end of file");
    if (Status read = archive.read(block); !read) return std::move(read).error();
    if (all_zero(view(block))) break;
    std::optional<TarFile> file = read_header(view(block));
    if (!file) return corrupt(at, "not a file header as written by kiln");
    file->offset = at + kTarBlock;
    const std::uint64_t rest = archive.left();
    const std::size_t padded = padding(file->size);
    if (file->size > rest || padded > rest - file->size) return corrupt(file->offset, "truncated file");
    if (Status passed = archive.skip(file->size); !passed) return std::move(passed).error();
    if (Status read = archive.read(std::span(block).first(padded)); !read) return std::move(read).error();
    if (!all_zero(view(block).substr(0, padded))) return corrupt(file->offset, "nonzero padding after a file");
    if (files.size() == kMaxTarFiles) return corrupt(file->offset, "too many files");
    files.push_back(std::move(*file));
  }
  const std::uint64_t end = size - archive.left() - kTarBlock;
  if (archive.left() != (kEndBlocks - 1) * kTarBlock) return corrupt(end, "its end is not two empty blocks");
  if (Status read = archive.read(block); !read) return std::move(read).error();
  if (!all_zero(view(block))) return corrupt(end, "its end is not two empty blocks");
  return files;
}

Result<std::vector<TarFile>> read_tar(std::span<const std::uint8_t> archive, const std::string& directory) {
  MemoryStream stream(archive);
  return read_tar(stream, directory);
}

}  // namespace kiln
