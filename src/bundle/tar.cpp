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

/// Octal digits to fill the field, and a zero byte.
void put_number(Block& block, Field field, std::uint64_t number) {
  for (std::size_t at = field.offset + field.size - 1; at-- > field.offset; number >>= 3) {
    block[at] = static_cast<char>('0' + (number & 7));
  }
}

Block header(std::string_view name, std::uint64_t size, bool folder) {
  Block block{};
  put(block, kName, name);
  put_number(block, kMode, folder ? 0555 : 0444);
  put_number(block, kUser, 0);
  put_number(block, kGroup, 0);
  put_number(block, kSize, size);
  put_number(block, kTime, 0);
  put(block, kType, folder ? "5" : "0");
  put(block, kMark, std::string_view("ustar\00000", 8));
  put_number(block, kDeviceMajor, 0);
  put_number(block, kDeviceMinor, 0);
  // The sum is taken with blanks in its place; it has six digits, a zero byte and a blank.
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

/// What the header says of a file, provided that it is the one that would have been written for it.
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

Result<std::string> write_tar(const std::string& folder, std::initializer_list<TarInput> files) {
  if (files.size() > kMostTarFiles) return failure(Code::InvalidArgument, "too many files for one layer");
  std::string out(view(header(folder, 0, true)));
  for (const TarInput& file : files) {
    if (file.name.empty() || file.name.size() > kName.size || file.bytes.size() > kLargestTarFile) {
      return failure(Code::InvalidArgument, file.name + " does not fit into a tar file: it has " +
                                                std::to_string(file.bytes.size()) + " bytes, the largest may have " +
                                                std::to_string(kLargestTarFile));
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

Result<std::vector<TarFile>> read_tar(std::span<const std::uint8_t> archive, const std::string& folder) {
  const std::string_view all(reinterpret_cast<const char*>(archive.data()), archive.size());
  const auto damaged = [](std::uint64_t at, const char* what) {
    return failure(Code::Corrupt, "the tar file is damaged at byte " + std::to_string(at) + ": " + what);
  };
  if (all.substr(0, kTarBlock) != view(header(folder, 0, true))) {
    return damaged(0, "it does not begin with its folder");
  }
  std::vector<TarFile> files;
  std::uint64_t at = kTarBlock;
  while (true) {
    if (all.size() - at < kTarBlock) return damaged(at, "it ends too early");
    // A copy: the archive may be a file, mapped, that somebody writes to.
    const std::string block(all.substr(at, kTarBlock));
    if (all_zero(block)) break;
    std::optional<TarFile> file = read_header(block);
    if (!file) return damaged(at, "not the header of a regular file as kiln writes it");
    at += kTarBlock;
    const std::uint64_t rest = all.size() - at;
    if (file->size > rest || padding(file->size) > rest - file->size) return damaged(at, "a file is cut off");
    if (!all_zero(all.substr(at + file->size, padding(file->size)))) return damaged(at, "something behind a file");
    if (files.size() == kMostTarFiles) return damaged(at, "too many files");
    file->offset = at;
    at += file->size + padding(file->size);
    files.push_back(std::move(*file));
  }
  const std::string_view end = all.substr(at);
  if (end.size() != kEndBlocks * kTarBlock || !all_zero(end)) return damaged(at, "its end is not two empty blocks");
  return files;
}

}  // namespace kiln
