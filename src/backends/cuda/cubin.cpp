// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cubin.hpp"

#include <elf.h>

#include <cstring>
#include <string>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr unsigned kCudaMachine = 190;

Error rejected(const std::string& reason) { return make_error(Code::LoadRejected, "invalid cubin: " + reason); }

// Returns true if `count` elements of `size` bytes at `offset` are within a file of `all` bytes.
bool within(std::uint64_t offset, std::uint64_t count, std::uint64_t size, std::uint64_t all) {
  if (count == 0) return true;
  return offset <= all && size != 0 && count <= (all - offset) / size;
}

template <class T>
T read_at(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Elf64_Shdr section_at(std::string_view bytes, const Elf64_Ehdr& header, unsigned index) {
  return read_at<Elf64_Shdr>(bytes, header.e_shoff + index * sizeof(Elf64_Shdr));
}

std::string_view content_of(std::string_view bytes, const Elf64_Shdr& section) {
  // The offset of an empty section was not checked and can have any value.
  if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS || section.sh_size == 0) return {};
  return bytes.substr(section.sh_offset, section.sh_size);
}

// Returns a NUL-terminated name in a string table; empty if it is not within the table.
std::string_view name_at(std::string_view table, std::uint32_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

void add_kernels(std::string_view symbols, std::string_view names, std::vector<std::string>& kernels) {
  constexpr unsigned char kKernelMark = 0x10;  // NVIDIA's flag in otherwise unused bits of a symbol
  for (std::size_t at = 0; symbols.size() - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(symbols, at);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kKernelMark) == 0) continue;
    if (const std::string_view name = name_at(names, symbol.st_name); !name.empty()) kernels.emplace_back(name);
  }
}

}  // namespace

Status check_cubin(std::string_view bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr)) return rejected("it is " + std::to_string(bytes.size()) + " bytes long");
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != kCudaMachine) {
    return rejected("it is not an ELF file of NVIDIA's machine type");
  }
  const bool tables = within(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), bytes.size()) &&
                      within(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), bytes.size());
  if (!tables || header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) || header.e_shstrndx >= header.e_shnum) {
    return rejected("it is truncated or corrupt");
  }
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
    if (!within(section.sh_offset, section.sh_size, 1, bytes.size())) return rejected("it is truncated or corrupt");
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!within(segment.p_offset, segment.p_filesz, 1, bytes.size())) return rejected("it is truncated or corrupt");
  }
  return {};
}

Result<CubinContents> read_cubin(std::string_view bytes) {
  if (Status whole = check_cubin(bytes); !whole) return std::move(whole).error();
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  const std::string_view section_names = content_of(bytes, section_at(bytes, header, header.e_shstrndx));
  CubinContents contents;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(bytes, header, i);
    if (name_at(section_names, section.sh_name) == ".debug_line") contents.has_line_table = true;
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= header.e_shnum) continue;
    const std::string_view names = content_of(bytes, section_at(bytes, header, section.sh_link));
    add_kernels(content_of(bytes, section), names, contents.kernels);
  }
  return contents;
}

std::vector<std::string> ptx_kernels(std::string_view text) {
  constexpr std::string_view kWord = ".entry";
  std::vector<std::string> names;
  for (std::size_t at = text.find(kWord); at != std::string_view::npos; at = text.find(kWord, at + kWord.size())) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at + kWord.size());
    if (begin == std::string_view::npos) break;
    names.emplace_back(text.substr(begin, text.find_first_of(" \t\r\n(", begin) - begin));
  }
  return names;
}

}  // namespace kiln
