#pragma once

#include <elf.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// The sections of a cubin. The bytes are the compiler's own and are believed.
struct CubinSections {
  explicit CubinSections(std::string_view cubin) : bytes(cubin) {
    read(head, 0);
    all.resize(head.e_shnum);
    for (std::size_t i = 0; i < all.size(); ++i) read(all[i], head.e_shoff + i * sizeof all[i]);
  }
  template <class T>
  void read(T& to, std::size_t at) const {
    std::memcpy(&to, bytes.data() + at, sizeof to);
  }
  std::string text(const Elf64_Shdr& strings, std::size_t at) const { return bytes.data() + strings.sh_offset + at; }
  std::string name_of(const Elf64_Shdr& section) const { return text(all[head.e_shstrndx], section.sh_name); }

  std::string_view bytes;
  Elf64_Ehdr head;
  std::vector<Elf64_Shdr> all;
};

/// What a cubin is but for the order and the places of its variables: every section but the symbol table and its names,
/// and the symbols as a set of names, kinds and sizes. Equal texts are equal code.
inline std::string code_of(std::string_view cubin) {
  const CubinSections sections(cubin);
  std::multimap<std::string, std::string> parts;
  std::multiset<std::string> symbols;
  for (const Elf64_Shdr& section : sections.all) {
    const std::string name = sections.name_of(section);
    if (section.sh_type == SHT_SYMTAB) {
      for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        sections.read(symbol, section.sh_offset + at);
        std::string one = sections.text(sections.all[section.sh_link], symbol.st_name) + '\0';
        symbol.st_name = 0;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) symbol.st_value = 0;
        symbols.insert(one.append(reinterpret_cast<const char*>(&symbol), sizeof symbol));
      }
    } else if (name.ends_with(".symtab")) {
      continue;  // from sm_100 on there is a second one of NVIDIA's own, `.nv.merc.symtab`, a copy of the first
    } else if (section.sh_type != SHT_STRTAB && section.sh_type != SHT_NOBITS) {
      parts.emplace(name, std::string(cubin.substr(section.sh_offset, section.sh_size)));
    }
  }
  std::string code;
  for (const auto& [name, content] : parts) code += name + '\0' + content + '\0';
  for (const std::string& symbol : symbols) code += symbol;
  return code;
}

/// The cubin in a blob of the CCCL library's, and what follows it there.
inline std::string_view cubin_within(std::string_view blob) {
  const std::size_t at = blob.find(std::string_view(ELFMAG, SELFMAG));
  Elf64_Ehdr head;
  if (at == std::string_view::npos || blob.size() - at < sizeof head) return {};
  return blob.substr(at);
}

/// The sections of machine code of a cubin, by name.
inline std::multimap<std::string, std::string> text_sections(std::string_view cubin) {
  std::multimap<std::string, std::string> texts;
  if (cubin.empty()) return texts;
  const CubinSections sections(cubin);
  for (const Elf64_Shdr& section : sections.all) {
    const std::string name = sections.name_of(section);
    if (name.starts_with(".text")) texts.emplace(name, cubin.substr(section.sh_offset, section.sh_size));
  }
  return texts;
}

}  // namespace kiln::test
