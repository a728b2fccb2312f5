// SPDX-License-Identifier: Apache-2.0
#include "bundle/embedded.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/process/process_lifecycle.hpp"

namespace kiln {
namespace {

constexpr char kNoteName[] = "kiln";    // including the terminating zero, which its size counts
constexpr std::uint32_t kNoteType = 1;  // version of the note
constexpr std::size_t kNoteHead = 12;
constexpr std::size_t kNoteDescriptor = 16;

std::size_t round_up(std::size_t size, std::size_t alignment) { return (size + alignment - 1) / alignment * alignment; }

std::uint32_t u32_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

BundleNote read_descriptor(std::span<const std::uint8_t> segment, std::size_t descriptor) {
  BundleNote note;
  std::memcpy(&note.offset, segment.data() + descriptor, sizeof note.offset);
  std::memcpy(&note.size, segment.data() + descriptor + sizeof note.offset, sizeof note.size);
  // The offset is relative to the descriptor. An offset that overflows is harmless: `is_loaded` rejects it.
  note.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(note.offset) + descriptor);
  return note;
}

// A bundle, and the data that identifies its object among all loaded objects.
struct NoteMatch {
  std::string name;  // as reported by the loader; empty for the program
  ElfW(Addr) base = 0;
  const ElfW(Phdr) * segments = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  bool ours = false;  // this code is in the same object

  bool in_object_of(const NoteMatch& other) const {
    return name == other.name && base == other.base && segments == other.segments;
  }
};

const std::uint8_t* bytes_at(ElfW(Addr) address) {
  return reinterpret_cast<const std::uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Returns true if the object has readable bytes of its file at all of these addresses.
bool is_loaded(const dl_phdr_info& object, ElfW(Addr) begin, std::uint64_t size) {
  for (ElfW(Half) i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const ElfW(Addr) offset = begin - (object.dlpi_addr + segment.p_vaddr);
    if (offset < segment.p_filesz && size <= segment.p_filesz - offset) return true;
  }
  return false;
}

int look_into(dl_phdr_info* object, std::size_t, void* out) {
  auto& found = *static_cast<std::vector<NoteMatch>*>(out);
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_NOTE || !is_loaded(*object, begin, segment.p_filesz)) continue;
    const std::span notes(bytes_at(begin), segment.p_filesz);
    for (const BundleNote& note : parse_bundle_notes(notes, segment.p_align)) {
      const ElfW(Addr) data = begin + static_cast<std::uint64_t>(note.offset);
      if (note.size == 0 || !is_loaded(*object, data, note.size)) continue;
      NoteMatch bundle;
      bundle.name = object->dlpi_name != nullptr ? object->dlpi_name : "";
      bundle.base = object->dlpi_addr;
      bundle.segments = object->dlpi_phdr;
      bundle.data = bytes_at(data);
      bundle.size = note.size;
      bundle.ours = is_loaded(*object, reinterpret_cast<ElfW(Addr)>(&look_into), 1);
      found.push_back(std::move(bundle));
    }
  }
  return 0;
}

std::vector<NoteMatch> look() {
  std::vector<NoteMatch> found;
  dl_iterate_phdr(look_into, &found);
  return found;
}

// Keeps an object loaded. Returns null if no object of this name is loaded any more.
std::shared_ptr<const void> hold(const NoteMatch& bundle) {
  void* handle = dlopen(bundle.name.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) {
    (void)dlerror();  // clears the error, which no other code should see
    return nullptr;
  }
  reregister_exit_handler();
  return {handle, [](const void* held) {
            // During exit, a handler of that library may still be running and must have code to return to.
            if (!process_is_ending()) dlclose(const_cast<void*>(held));
          }};
}

// Returns a human-readable path.
std::string path_of(const NoteMatch& bundle) {
  if (!bundle.name.empty()) return bundle.name;
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? "the program" : program.string();
}

}  // namespace

std::vector<BundleNote> parse_bundle_notes(std::span<const std::uint8_t> segment, std::uint64_t alignment) {
  std::vector<BundleNote> notes;
  // Linkers write 0 and 1 for 4. Only 4 and 8 are valid.
  if (alignment != 8 && alignment > 4) return notes;
  const std::size_t unit = alignment == 8 ? 8 : 4;
  for (std::size_t at = 0; at < segment.size() && segment.size() - at >= kNoteHead;) {
    const std::size_t name = at + kNoteHead;
    const std::size_t name_size = u32_at(segment, at);
    const std::size_t descriptor = at + round_up(kNoteHead + name_size, unit);
    const std::size_t descriptor_size = u32_at(segment, at + 4);
    if (descriptor > segment.size() || descriptor_size > segment.size() - descriptor) break;
    if (u32_at(segment, at + 8) == kNoteType && descriptor_size == kNoteDescriptor && name_size == sizeof kNoteName &&
        std::memcmp(segment.data() + name, kNoteName, sizeof kNoteName) == 0) {
      notes.push_back(read_descriptor(segment, descriptor));
    }
    at = descriptor + round_up(descriptor_size, unit);  // the descriptor starts at a multiple of `unit`
  }
  return notes;
}

std::vector<EmbeddedBundle> embedded_bundles() {
  // A library cannot be pinned while the loader iterates over it, because the iteration and `dlclose` take the same two
  // locks in opposite order. So all libraries are pinned first, and only the results of a second iteration over the
  // pinned ones are used.
  std::vector<std::pair<NoteMatch, std::shared_ptr<const void>>> held;
  for (NoteMatch& bundle : look()) {
    const bool stays = bundle.name.empty() || bundle.ours;
    std::shared_ptr<const void> owner = stays ? nullptr : hold(bundle);
    if (stays || owner != nullptr) held.emplace_back(std::move(bundle), std::move(owner));
  }
  std::vector<EmbeddedBundle> bundles;
  if (held.empty()) return bundles;
  for (const NoteMatch& bundle : look()) {
    const auto holder =
        std::find_if(held.begin(), held.end(), [&](const auto& one) { return one.first.in_object_of(bundle); });
    if (holder == held.end()) continue;
    bundles.push_back({Bytes(holder->second, bundle.data, bundle.size), path_of(bundle)});
  }
  return bundles;
}

std::uint64_t loaded_object_count() {
  std::uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

}  // namespace kiln
