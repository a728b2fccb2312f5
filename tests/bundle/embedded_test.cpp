// SPDX-License-Identifier: Apache-2.0
#include "bundle/embedded.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/codec.hpp"
#include "base/process/process_lifecycle.hpp"

extern "C" int embedded_library();

namespace kiln {
namespace {

/// Returns the number of found bundles with this text.
std::ptrdiff_t count_of(const std::string& text) {
  const std::vector<EmbeddedBundle> found = embedded_bundles();
  return std::count_if(found.begin(), found.end(),
                       [&](const EmbeddedBundle& bundle) { return bundle.bytes.view() == text; });
}

bool is_loaded(const char* path) {
  void* handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

TEST(Embedded, FindsBundleOfLinkedLibrary) {
  ASSERT_EQ(embedded_library(), 1);
  const std::vector<EmbeddedBundle> found = embedded_bundles();
  const auto library = std::find_if(found.begin(), found.end(), [](const EmbeddedBundle& bundle) {
    return bundle.bytes.view() == "the bundle of the library";
  });
  ASSERT_NE(library, found.end());
  EXPECT_NE(library->object.find("libembedded_library.so"), std::string::npos) << library->object;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(library->bytes.data()) % 4096, 0U);
}

TEST(Embedded, FindsBundleOfUnreferencedStaticLibraryOnce) {
  const std::vector<EmbeddedBundle> found = embedded_bundles();
  std::vector<std::string> programs;
  for (const EmbeddedBundle& bundle : found) {
    if (bundle.bytes.view() == "the bundle of the archive") programs.push_back(bundle.object);
  }
  ASSERT_EQ(programs.size(), 1U);
  EXPECT_NE(programs[0].find("/test_embedded"), std::string::npos) << programs[0];
}

TEST(Embedded, FindsBundlesOfModuleOnlyWhileItIsLoaded) {
  EXPECT_EQ(count_of("the bundle of the module"), 0);
  const std::uint64_t before = loaded_object_count();
  void* module = dlopen(KILN_EMBEDDED_MODULE, RTLD_NOW);
  ASSERT_NE(module, nullptr) << dlerror();
  EXPECT_GT(loaded_object_count(), before);
  EXPECT_EQ(count_of("the bundle of the module"), 1);
  EXPECT_EQ(count_of("the bundle of the second"), 1);
  dlclose(module);
  EXPECT_FALSE(is_loaded(KILN_EMBEDDED_MODULE)) << "released results do not keep the module loaded";
  EXPECT_EQ(count_of("the bundle of the module"), 0);
}

TEST(Embedded, HeldBytesKeepLibraryLoaded) {
  void* module = dlopen(KILN_EMBEDDED_MODULE, RTLD_NOW);
  ASSERT_NE(module, nullptr) << dlerror();
  Bytes held;
  for (const EmbeddedBundle& bundle : embedded_bundles()) {
    if (bundle.bytes.view() == "the bundle of the module") held = bundle.bytes;
  }
  dlclose(module);
  EXPECT_TRUE(is_loaded(KILN_EMBEDDED_MODULE));
  EXPECT_EQ(held.view(), "the bundle of the module");
  held = Bytes();
  EXPECT_FALSE(is_loaded(KILN_EMBEDDED_MODULE));
}

// As a session does.
class Listener final : public ProcessLifecycleListener {
 public:
  void at_exit() override {}
  void in_child() override {}
};

TEST(EmbeddedDeathTest, LibraryThatHoldsItsOwnBundleIsNotUnloadedAtExit) {
  const auto end = [] {
    static Listener listener;
    add_process_listener(listener);
    void* module = dlopen(KILN_EMBEDDED_MODULE, RTLD_NOW);
    auto keep = reinterpret_cast<void (*)(const std::shared_ptr<const void>*)>(dlsym(module, "embedded_module_keep"));
    {
      const std::shared_ptr<const void> bundles = std::make_shared<std::vector<EmbeddedBundle>>(embedded_bundles());
      keep(&bundles);
    }
    dlclose(module);
    std::exit(is_loaded(KILN_EMBEDDED_MODULE) ? 0 : 1);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "");
}

TEST(Embedded, SkipsForgedNotesOfObject) {
  void* module = dlopen(KILN_EMBEDDED_HOSTILE, RTLD_NOW);
  ASSERT_NE(module, nullptr) << dlerror();
  std::vector<std::string> found;
  for (const EmbeddedBundle& bundle : embedded_bundles()) {
    if (bundle.object == KILN_EMBEDDED_HOSTILE) found.emplace_back(bundle.bytes.view());
  }
  dlclose(module);
  EXPECT_EQ(found, std::vector<std::string>{"the bundle of an honest note"});
}

/// Returns a note as a linker writes it, in units of `unit` bytes.
std::string note(std::size_t unit, std::uint64_t offset, std::uint64_t size, std::uint32_t type = 1,
                 std::uint32_t name_size = 5, std::uint32_t descriptor_size = 16) {
  const auto padded = [unit](std::string text) {
    text.resize((text.size() + unit - 1) / unit * unit);
    return text;
  };
  BinaryWriter head;
  head.u32(name_size).u32(descriptor_size).u32(type).raw("kiln", 5);
  BinaryWriter descriptor;
  descriptor.u64(offset).u64(size);
  return padded(padded(head.bytes()) + descriptor.bytes());
}

std::vector<BundleNote> parse(const std::string& segment, std::uint64_t alignment) {
  // A copy of exactly this size, so that a sanitizer detects a read past its end.
  const std::vector<std::uint8_t> exact(segment.begin(), segment.end());
  return parse_bundle_notes(exact, alignment);
}

TEST(BundleNote, ParsesUnitsOfFourAndEightBytesRelativeToDescriptor) {
  for (const std::size_t alignment : {0, 1, 4, 8}) {
    const std::size_t unit = alignment == 8 ? 8 : 4;
    const std::string one = note(unit, 1000, 7);
    const std::vector<BundleNote> notes = parse(one + note(unit, -40, 9), alignment);
    ASSERT_EQ(notes.size(), 2U) << alignment;
    const auto descriptor = static_cast<std::int64_t>(unit == 8 ? 24 : 20);
    EXPECT_EQ(notes[0].offset, 1000 + descriptor);
    EXPECT_EQ(notes[0].size, 7U);
    EXPECT_EQ(notes[1].offset, static_cast<std::int64_t>(one.size()) + descriptor - 40);
    EXPECT_EQ(notes[1].size, 9U);
  }
  EXPECT_TRUE(parse(note(4, 1000, 7), 16).empty()) << "no linker writes such a segment";
}

TEST(BundleNote, SkipsOtherVersionsAndOtherNames) {
  std::string other = note(4, 1, 2);
  other[12] = 'K';
  EXPECT_EQ(parse(note(4, 1, 2, 2) + other + note(4, 1, 2), 4).size(), 1U);
}

TEST(BundleNote, StopsAtSizesThatDoNotFit) {
  const std::string good = note(4, 1, 2);
  for (const std::string& bad : {note(4, 1, 2, 1, 0xffffffff), note(4, 1, 2, 1, 5, 0xffffffff),
                                 note(4, 1, 2, 1, 0xfffffff0, 0xfffffff0), note(4, 1, 2, 1, 100)}) {
    EXPECT_EQ(parse(good + bad, 4).size(), 1U);
    EXPECT_EQ(parse(bad, 4).size(), 0U);
  }
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_TRUE(parse(good.substr(0, size), 4).empty()) << size;
  const auto descriptor_of_eight = parse(note(4, 1, 2, 1, 5, 8) + good, 4);
  EXPECT_LE(descriptor_of_eight.size(), 1U);
}

}  // namespace
}  // namespace kiln
