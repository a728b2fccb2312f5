#include "device/cubin_check.hpp"

#include <elf.h>

#include <cstring>
#include <string>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr unsigned kCudaMachine = 190;

Error refused(const std::string& why) {
  return failure(Code::LoadRefused, "no cubin that a driver could load: " + why);
}

// Whether `count` things of `size` bytes at `offset` lie within a file of so many bytes.
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

}  // namespace

Status check_cubin(std::string_view bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr)) return refused("it is " + std::to_string(bytes.size()) + " bytes long");
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != kCudaMachine) {
    return refused("it is no ELF file of NVIDIA's machine");
  }
  const bool tables = within(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), bytes.size()) &&
                      within(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), bytes.size());
  if (!tables || header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) || header.e_shstrndx >= header.e_shnum) {
    return refused("it was cut short or damaged");
  }
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
    if (!within(section.sh_offset, section.sh_size, 1, bytes.size())) return refused("it was cut short or damaged");
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!within(segment.p_offset, segment.p_filesz, 1, bytes.size())) return refused("it was cut short or damaged");
  }
  return {};
}

}  // namespace kiln
