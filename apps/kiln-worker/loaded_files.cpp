// SPDX-License-Identifier: Apache-2.0
#include "loaded_files.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/codec.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

struct Loaded {
  BinaryWriter out;
  bool complete = true;
};

// Returns the GNU build id in the notes of a loaded object; empty if it has none.
std::string_view build_id_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const char* const notes = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
    const std::size_t size = segment.p_memsz;
    const auto padded = [](std::size_t length) { return (length + 3) & ~std::size_t{3}; };
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof note);
      const std::size_t name = at + sizeof note;
      const std::size_t content = name + padded(note.n_namesz);
      if (content + note.n_descsz > size) break;
      if (note.n_type == NT_GNU_BUILD_ID &&
          std::string_view(notes + name, note.n_namesz) == std::string_view("GNU\0", 4))
        return {notes + content, note.n_descsz};
      at = content + padded(note.n_descsz);
    }
  }
  return {};
}

int add_object(dl_phdr_info* object, std::size_t /*size*/, void* to) {
  Loaded& loaded = *static_cast<Loaded*>(to);
  const std::string_view name = object->dlpi_name != nullptr ? object->dlpi_name : "";
  const std::string path(name.empty() ? "/proc/self/exe" : name);
  loaded.out.text(name).text(build_id_of(*object));
  if (path.starts_with("linux-")) return 0;  // the kernel's own object, which has no file
  // The meaning of a relative name depends on the directory at the time when it was loaded.
  const auto stamp = path.front() == '/' ? stamp_of(path.c_str()) : std::nullopt;
  if (!stamp) {
    loaded.complete = false;
    return 1;
  }
  loaded.out.u64(stamp->device).u64(stamp->inode).u64(stamp->size);
  loaded.out.u64(static_cast<std::uint64_t>(stamp->modified_ns)).u64(static_cast<std::uint64_t>(stamp->changed_ns));
  return 0;
}

}  // namespace

Digest loaded_files_digest() {
  Loaded loaded;
  dl_iterate_phdr(add_object, &loaded);
  return loaded.complete ? sha256(loaded.out.bytes()) : Digest();
}

}  // namespace kiln
