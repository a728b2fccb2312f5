#include "vendor/cubin_symbols.hpp"

#include <elf.h>

#include <cstring>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr unsigned kCudaMachine = 190;
// The bit of a symbol's `st_other` by which NVIDIA marks the functions that are kernels.
constexpr unsigned kKernelMark = 0x10;

Error refused(const std::string& why) { return failure(Code::Corrupt, "no cubin: " + why); }

// Whether `count` things of `size` bytes at `offset` lie within the bytes.
bool within(std::string_view bytes, std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
  return offset <= bytes.size() && count <= (bytes.size() - offset) / size;
}

template <class T>
T read_at(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Status add_kernels(std::string_view bytes, const Elf64_Shdr& symbols, const Elf64_Shdr& names,
                   std::vector<std::string>& kernels) {
  const std::uint64_t count = symbols.sh_size / sizeof(Elf64_Sym);
  if (!within(bytes, symbols.sh_offset, count, sizeof(Elf64_Sym)) ||
      !within(bytes, names.sh_offset, names.sh_size, 1)) {
    return refused("it was cut short or damaged");
  }
  const std::string_view texts = bytes.substr(names.sh_offset, names.sh_size);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto symbol = read_at<Elf64_Sym>(bytes, symbols.sh_offset + i * sizeof(Elf64_Sym));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kKernelMark) == 0) continue;
    const std::size_t end = symbol.st_name < texts.size() ? texts.find('\0', symbol.st_name) : std::string_view::npos;
    if (end == std::string_view::npos) return refused("it has a symbol without a name");
    kernels.emplace_back(texts.substr(symbol.st_name, end - symbol.st_name));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> kernel_symbols(std::string_view bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr)) return refused("it is " + std::to_string(bytes.size()) + " bytes long");
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != kCudaMachine) {
    return refused("it is no ELF file of NVIDIA's machine");
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !within(bytes, header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr))) {
    return refused("it was cut short or damaged");
  }
  const auto section = [&](std::uint64_t i) {
    return read_at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  std::vector<std::string> kernels;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    if (symbols.sh_link >= header.e_shnum) return refused("it was cut short or damaged");
    if (Status added = add_kernels(bytes, symbols, section(symbols.sh_link), kernels); !added) {
      return std::move(added).error();
    }
  }
  return kernels;
}

}  // namespace kiln
