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

#include "base/process_life.hpp"

namespace kiln {
namespace {

constexpr char kNoteName[] = "kiln";    // with the zero that ends it, which its size counts
constexpr std::uint32_t kNoteType = 1;  // the version of the note
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
  // It counts from itself. One that overflows is an offset like any other, which leads nowhere.
  note.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(note.offset) + descriptor);
  return note;
}

// A bundle, and what tells its object from all others that are loaded.
struct Found {
  std::string name;  // as the loader has it; empty for the program
  ElfW(Addr) base = 0;
  const ElfW(Phdr) * segments = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  bool ours = false;  // this code is in the same object

  bool in_object_of(const Found& other) const {
    return name == other.name && base == other.base && segments == other.segments;
  }
};

const std::uint8_t* bytes_at(ElfW(Addr) address) {
  return reinterpret_cast<const std::uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Whether the object has readable bytes of its file at all of these addresses.
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
  auto& found = *static_cast<std::vector<Found>*>(out);
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_NOTE || !is_loaded(*object, begin, segment.p_filesz)) continue;
    const std::span notes(bytes_at(begin), segment.p_filesz);
    for (const BundleNote& note : parse_bundle_notes(notes, segment.p_align)) {
      const ElfW(Addr) data = begin + static_cast<std::uint64_t>(note.offset);
      if (note.size == 0 || !is_loaded(*object, data, note.size)) continue;
      Found bundle;
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

std::vector<Found> look() {
  std::vector<Found> found;
  dl_iterate_phdr(look_into, &found);
  return found;
}

// Keeps an object loaded. Null where there is none of this name any more.
std::shared_ptr<const void> hold(const Found& bundle) {
  void* handle = dlopen(bundle.name.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) {
    (void)dlerror();  // it is nobody else's
    return nullptr;
  }
  stay_ahead_of_exit_handlers();
  return {handle, [](const void* held) {
            // What is in an exit handler of that very library must have something to return to.
            if (!process_is_ending()) dlclose(const_cast<void*>(held));
          }};
}

// For people.
std::string path_of(const Found& bundle) {
  if (!bundle.name.empty()) return bundle.name;
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? "the program" : program.string();
}

}  // namespace

std::vector<BundleNote> parse_bundle_notes(std::span<const std::uint8_t> segment, std::uint64_t alignment) {
  std::vector<BundleNote> notes;
  // As linkers write it, 0 and 1 mean 4; there is nothing but 4 and 8.
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
    at = descriptor + round_up(descriptor_size, unit);  // the descriptor begins at a multiple of the unit
  }
  return notes;
}

std::vector<EmbeddedBundle> embedded_bundles() {
  // No library can be held while the loader walks over it: the walk and dlclose take the same two locks in opposite
  // order. So all are held first, and what counts is what the second walk finds in those which are.
  std::vector<std::pair<Found, std::shared_ptr<const void>>> held;
  for (Found& bundle : look()) {
    const bool stays = bundle.name.empty() || bundle.ours;
    std::shared_ptr<const void> owner = stays ? nullptr : hold(bundle);
    if (stays || owner != nullptr) held.emplace_back(std::move(bundle), std::move(owner));
  }
  std::vector<EmbeddedBundle> bundles;
  if (held.empty()) return bundles;
  for (const Found& bundle : look()) {
    const auto holder =
        std::find_if(held.begin(), held.end(), [&](const auto& one) { return one.first.in_object_of(bundle); });
    if (holder == held.end()) continue;
    bundles.push_back({Bytes(holder->second, bundle.data, bundle.size), path_of(bundle)});
  }
  return bundles;
}

std::uint64_t loaded_objects() {
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
