// SPDX-License-Identifier: Apache-2.0
// Cubins: ELF files with sections that describe each kernel. The parts that this reader uses:
//   e_ident[8] 8: the architecture is bits 8-15 of e_flags; 7: bits 0-7, and bits 11 or 3 mark "this one only"
//   .symtab: a function with bit 0x10 of st_other is a kernel
//   .nv.info*: records of u8 format, u8 attribute, u16 value; format 4 has `value` bytes after it
//   .nv.shared.<kernel>: its size is the kernel's static shared memory
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/codec.hpp"
#include "support/fakes/cuda_driver/image.hpp"

namespace kiln::test::driver {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint16_t kCudaMachine = 190;
constexpr unsigned char kKernelMark = 0x10;
// From this architecture, a kernel's shared memory section starts with a part that the system reserves.
constexpr int kFirstReserving = 90;
constexpr std::size_t kReservedShared = 1024;

template <class T>
std::optional<T> load(Bytes bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct Section {
  Elf64_Shdr header{};
  std::string_view name;
  Bytes content;
};

/// Returns a name in a string table; it must end within the table.
std::optional<std::string_view> name_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const auto begin = table.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto end = std::find(begin, table.end(), 0);
  if (end == table.end()) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(&*begin), static_cast<std::size_t>(end - begin));
}

bool content_of(Bytes file, Section& section) {
  if (section.header.sh_type == SHT_NOBITS || section.header.sh_type == SHT_NULL) return true;
  const std::uint64_t offset = section.header.sh_offset;
  if (offset > file.size() || section.header.sh_size > file.size() - offset) return false;
  section.content = file.subspan(offset, section.header.sh_size);
  return true;
}

bool read_sections(Bytes file, const Elf64_Ehdr& header, std::vector<Section>& sections) {
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum) return false;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    if (header.e_shoff > file.size()) return false;
    const auto found = load<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    Section section;
    if (!found) return false;
    section.header = *found;
    if (!content_of(file, section)) return false;
    sections.push_back(section);
  }
  const Bytes names = sections[header.e_shstrndx].content;
  for (Section& section : sections) {
    const auto name = name_at(names, section.header.sh_name);
    if (!name) return false;
    section.name = *name;
  }
  return true;
}

const Section* section_named(const std::vector<Section>& sections, std::string_view name) {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& s) { return s.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

/// Calls `visit(attribute, value, payload)` for each record. Returns false if a record does not fit. The value of a
/// record with a payload is the payload's length.
template <class Visit>
bool for_each_record(Bytes content, Visit visit) {
  BinaryReader in(content);
  while (in.ok() && in.left() > 0) {
    const std::uint8_t format = in.u8();
    const std::uint8_t attribute = in.u8();
    const std::uint16_t value = in.u16();
    const std::string_view payload = format == 4 ? in.raw(value) : std::string_view();
    if (in.ok() && !visit(attribute, value, payload)) return false;
  }
  return in.ok();
}

bool add_parameter(std::uint8_t attribute, std::string_view payload, std::map<unsigned, Parameter>& parameters) {
  BinaryReader in(payload);
  in.u32();
  const unsigned ordinal = in.u16();
  Parameter parameter;
  parameter.offset = in.u16();
  const std::uint32_t word = in.u32();
  parameter.size = attribute == 0x45 ? word & 0xffffff : word >> 18;
  parameters[ordinal] = parameter;
  return in.ok();
}

bool read_kernel_info(Bytes content, KernelImage& kernel) {
  std::map<unsigned, Parameter> parameters;
  const bool read =
      for_each_record(content, [&](std::uint8_t attribute, std::uint16_t value, std::string_view payload) {
        if (attribute == 0x17 || attribute == 0x45) return add_parameter(attribute, payload, parameters);
        if (attribute == 0x19) kernel.parameter_bytes = value;
        if (attribute == 0x05) {
          BinaryReader in(payload);
          const std::uint64_t threads = std::uint64_t{in.u32()} * in.u32() * in.u32();
          kernel.max_threads = static_cast<unsigned>(std::min<std::uint64_t>(threads, 1024));
          return in.ok();
        }
        return true;
      });
  unsigned expected = 0;
  for (const auto& [ordinal, parameter] : parameters) {
    // Parameters are contiguous and end within the parameter block; otherwise a launch would copy past it.
    if (ordinal != expected++ || parameter.offset + parameter.size > kernel.parameter_bytes) return false;
    kernel.parameters.push_back(parameter);
  }
  return read;
}

/// Reads register counts by symbol index.
bool read_registers(const std::vector<Section>& sections, std::map<std::uint32_t, unsigned>& registers) {
  const Section* info = section_named(sections, ".nv.info");
  if (info == nullptr) return true;
  return for_each_record(info->content, [&](std::uint8_t attribute, std::uint16_t, std::string_view payload) {
    if (attribute != 0x2f) return true;
    BinaryReader in(payload);
    const std::uint32_t symbol = in.u32();
    registers[symbol] = in.u32();
    return in.ok();
  });
}

bool read_kernels(const std::vector<Section>& sections, Image& image) {
  const Section* symbols = section_named(sections, ".symtab");
  if (symbols == nullptr || symbols->header.sh_link >= sections.size()) return false;
  const Bytes names = sections[symbols->header.sh_link].content;
  std::map<std::uint32_t, unsigned> registers;
  if (!read_registers(sections, registers)) return false;
  const std::size_t count = symbols->content.size() / sizeof(Elf64_Sym);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto symbol = load<Elf64_Sym>(symbols->content, std::uint64_t{i} * sizeof(Elf64_Sym));
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || (symbol->st_other & kKernelMark) == 0) continue;
    const auto name = name_at(names, symbol->st_name);
    if (!name || name->empty()) return false;
    KernelImage kernel;
    kernel.name = *name;
    kernel.registers = registers[i];
    const Section* info = section_named(sections, ".nv.info." + kernel.name);
    if (info == nullptr || !read_kernel_info(info->content, kernel)) return false;
    if (const Section* shared = section_named(sections, ".nv.shared." + kernel.name)) {
      kernel.shared_bytes = shared->header.sh_size;
      const bool reserves = image.architecture >= kFirstReserving && section_named(sections, ".nv.shared.reserved.0");
      if (reserves) kernel.shared_bytes -= std::min(kernel.shared_bytes, kReservedShared);
    }
    image.kernels.push_back(std::move(kernel));
  }
  return true;
}

void read_architecture(const Elf64_Ehdr& header, const std::vector<Section>& sections, Image& image) {
  const bool newer = header.e_ident[EI_ABIVERSION] == 8;
  image.architecture = static_cast<int>(newer ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff);
  image.exact = !newer && (header.e_flags & (1u << 11)) != 0;
  const Section* compatibility = section_named(sections, ".nv.compat");
  if (compatibility == nullptr) {
    // Between the two formats, CUDA 12.9 marks it in the flags; in 13 these bits have another meaning, and this section
    // exists.
    image.exact = image.exact || (newer && (header.e_flags & (1u << 3)) != 0);
    return;
  }
  for_each_record(compatibility->content, [&](std::uint8_t attribute, std::uint16_t value, std::string_view) {
    if (attribute == 9 && (value & 0xff) == 1) image.exact = true;
    return true;
  });
}

bool is_cuda_elf(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == kCudaMachine;
}

}  // namespace

bool Image::runs_on(int device) const {
  if (exact) return device == architecture;
  if (kind == Kind::Ptx) return device >= architecture;
  return device / 10 == architecture / 10 && device >= architecture;
}

std::size_t cubin_extent(std::span<const std::uint8_t> bytes) {
  const auto header = load<Elf64_Ehdr>(bytes, 0);
  if (!header || !is_cuda_elf(*header)) return 0;
  // In files of the toolkits, the two tables are at the end.
  const std::uint64_t sections = header->e_shoff + std::uint64_t{header->e_shnum} * header->e_shentsize;
  const std::uint64_t programs = header->e_phoff + std::uint64_t{header->e_phnum} * header->e_phentsize;
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  const std::uint64_t extent = std::max({sections, programs, std::uint64_t{sizeof(Elf64_Ehdr)}});
  return extent > kMaxBytes || sections < header->e_shoff || programs < header->e_phoff ? 0 : extent;
}

bool read_cubin(Bytes bytes, Image& image) {
  const auto header = load<Elf64_Ehdr>(bytes, 0);
  if (!header || !is_cuda_elf(*header)) return false;
  const unsigned char form = header->e_ident[EI_ABIVERSION];
  std::vector<Section> sections;
  if ((form != 7 && form != 8) || !read_sections(bytes, *header, sections)) return false;
  image = {};
  read_architecture(*header, sections, image);
  return read_kernels(sections, image);
}

}  // namespace kiln::test::driver
