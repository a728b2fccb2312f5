// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include <kiln/unit.hpp>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {

/// Returns a cubin for sm_80 with one kernel, `one`, without parameters. It has the part of the format that kiln and
/// the fake driver read. `padding` makes it longer.
inline std::string fake_cubin(const std::string& padding = {}) {
  static constexpr char kNames[] = "\0.shstrtab\0.strtab\0.symtab\0.nv.info.one\0.padding";
  const std::string names(kNames, sizeof kNames);
  const std::string symbols_names(std::string("\0one\0", 5));
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = 1;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[1].st_other = 0x10;
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(1);
  const auto add = [&](const char* name, unsigned type, std::string_view content) {
    Elf64_Shdr section = {};
    section.sh_name = static_cast<Elf64_Word>(names.find(name));
    section.sh_type = type;
    section.sh_offset = file.size();
    section.sh_size = content.size();
    sections.push_back(section);
    file += content;
  };
  add(".shstrtab", SHT_STRTAB, names);
  add(".strtab", SHT_STRTAB, symbols_names);
  add(".symtab", SHT_SYMTAB, {reinterpret_cast<const char*>(symbols), sizeof symbols});
  sections.back().sh_link = 2;
  add(".nv.info.one", SHT_PROGBITS, {});
  add(".padding", SHT_PROGBITS, padding);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_ABIVERSION] = 7;
  header.e_machine = 190;
  header.e_flags = 80;
  header.e_shoff = file.size();
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = 1;
  std::memcpy(file.data(), &header, sizeof header);
  file.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof sections[0]);
  return file;
}

/// A compiler that takes milliseconds. Its result is the source, a fake cubin, followed by the content of `header.h` in
/// the last include directory, if any.
class CubinCompiler {
 public:
  CubinCompiler() : program_(directory_.path("compiler")) {
    write_text(program_, R"(#!/bin/sh
for last; do :; done
case "$last" in
  -I*) header=${last#-I}/header.h; cat "$1" "$header" > "$2";;
  *) header=; cp "$1" "$2";;
esac
echo "out: $1 $header" > "$3"
)");
    chmod(program_.c_str(), 0700);
  }
  Unit unit(const std::string& name, const std::string& padding = {}) const {
    return Unit::command(name, fake_cubin(padding), {program_, "{source}", "{output}", "{depfile}", "{includes}"})
        .with_entry("one");
  }
  /// Returns a unit that includes `header.h` of this directory.
  Unit including(const std::string& name, const std::string& directory) const {
    return unit(name).with_include_root(directory);
  }

 private:
  TemporaryDirectory directory_;
  std::string program_;
};

}  // namespace kiln::test
