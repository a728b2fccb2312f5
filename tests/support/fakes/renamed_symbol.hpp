// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "support/fixtures/files.hpp"

namespace kiln::test {

/// Copies a program and removes the name of an exported dynamic symbol: libraries that the copy loads find libc's
/// symbol instead. Returns false if the program does not export the symbol.
inline bool copy_without_symbol(const std::string& program, const std::string& symbol, const std::string& copy) {
  std::string bytes = read_text(program);
  const auto at = [&](std::size_t offset) { return bytes.data() + offset; };
  Elf64_Ehdr head;
  std::memcpy(&head, at(0), sizeof head);
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, at(head.e_shoff + i * sizeof section), sizeof section);
    if (section.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr names;
    std::memcpy(&names, at(head.e_shoff + section.sh_link * sizeof names), sizeof names);
    for (std::size_t offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Sym)) {
      Elf64_Sym entry;
      std::memcpy(&entry, at(section.sh_offset + offset), sizeof entry);
      if (entry.st_shndx == SHN_UNDEF || at(names.sh_offset + entry.st_name) != symbol) continue;
      entry.st_name = 0;
      std::memcpy(at(section.sh_offset + offset), &entry, sizeof entry);
      write_text(copy, bytes);
      std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
      return true;
    }
  }
  return false;
}

}  // namespace kiln::test
