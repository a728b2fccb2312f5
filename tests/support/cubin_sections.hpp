#pragma once

#include <elf.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// What a cubin is but for the order and the places of its variables: every section but the symbol table and its names,
/// and the symbols as a set of names, kinds and sizes. Equal texts are equal code. The bytes are the compiler's own and
/// are believed.
inline std::string code_of(std::string_view cubin) {
  const auto read = [&](auto& to, std::size_t at) { std::memcpy(&to, cubin.data() + at, sizeof to); };
  Elf64_Ehdr head;
  read(head, 0);
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) read(sections[i], head.e_shoff + i * sizeof sections[i]);
  const auto text = [&](const Elf64_Shdr& strings, std::size_t at) {
    return std::string(cubin.data() + strings.sh_offset + at);
  };
  std::multimap<std::string, std::string> parts;
  std::multiset<std::string> symbols;
  for (const Elf64_Shdr& section : sections) {
    const std::string name = text(sections[head.e_shstrndx], section.sh_name);
    if (section.sh_type == SHT_SYMTAB) {
      for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        read(symbol, section.sh_offset + at);
        std::string one = text(sections[section.sh_link], symbol.st_name) + '\0';
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

}  // namespace kiln::test
