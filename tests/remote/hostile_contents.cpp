// SPDX-License-Identifier: Apache-2.0
#include "base/codec.hpp"
#include "base/zstd_frame.hpp"
#include "hostile_scenarios.hpp"

namespace kiln::test {

using namespace std::string_literals;

namespace {

std::string zstd_frame(std::string_view raw) {
  std::string frame;
  EXPECT_TRUE(ZstdCompressor(1).append_frame(raw, frame).has_value());
  return frame;
}

// The parts of a packed entry, each of which a scenario can change.
struct Pack {
  std::string entry;
  std::string frame = zstd_frame(entry);
  std::uint64_t size = entry.size();
  std::uint32_t version = 1;
  std::string text() const { return BinaryWriter().raw("KILNPCK1", 8).u32(version).u64(size).bytes() + frame; }
};

// Packed content that a trusted key signed, changed by `change`.
Scenario packed(std::string name, std::string word, std::function<void(Pack&)> change) {
  return {std::move(name), std::move(word), Reach::Content, [change = std::move(change)](Stage& s) {
            Pack pack{s.entry};
            change(pack);
            s.sign_content(pack.text());
          }};
}

}  // namespace

std::vector<Scenario> packed_scenarios() {
  const auto malformed = [](std::string name, std::function<void(Pack&)> change) {
    return packed(std::move(name), "entry_malformed", std::move(change));
  };
  return {
      packed("a_packed_entry_of_a_newer_version", "newer_version", [](Pack& p) { p.version = 2; }),
      // A newer version may have any other fields.
      packed("a_short_packed_entry_of_a_newer_version", "newer_version",
             [](Pack& p) { p = {.entry = "", .frame = "x", .size = UINT64_MAX, .version = UINT32_MAX}; }),
      packed("a_packed_entry_with_an_entry_of_a_newer_version", "newer_version",
             [](Pack& p) {
               p.entry[8] = 2;
               p.frame = zstd_frame(p.entry);
             }),
      malformed("a_packed_entry_of_version_0", [](Pack& p) { p.version = 0; }),
      malformed("a_packed_entry_without_a_frame", [](Pack& p) { p.frame.clear(); }),
      malformed("a_packed_entry_that_is_not_compressed", [](Pack& p) { p.frame = p.entry; }),
      malformed("a_packed_entry_with_a_truncated_frame", [](Pack& p) { p.frame.pop_back(); }),
      malformed("a_packed_entry_with_trailing_bytes", [](Pack& p) { p.frame += 'x'; }),
      malformed("a_packed_entry_with_two_frames", [](Pack& p) { p.frame += zstd_frame(""); }),
      malformed("a_packed_entry_with_a_skippable_frame",
                [](Pack& p) { p.frame = BinaryWriter().u32(0x184D2A50).u32(0).bytes() + p.frame; }),
      malformed("a_packed_entry_with_a_corrupt_frame",
                [](Pack& p) {
                  p.entry.append(1000, 'x');
                  p.size = p.entry.size();
                  p.frame = zstd_frame(p.entry);
                  p.frame[p.frame.size() - 3] ^= 0x55;
                }),
      malformed("a_packed_entry_that_is_larger_than_its_size", [](Pack& p) { --p.size; }),
      malformed("a_packed_entry_that_is_smaller_than_its_size", [](Pack& p) { ++p.size; }),
      malformed("a_packed_entry_of_size_0", [](Pack& p) { p = {.entry = ""}; }),
      malformed("a_packed_entry_that_is_smaller_than_an_entry", [](Pack& p) { p = {.entry = std::string(87, 'x')}; }),
      malformed("a_packed_entry_beyond_the_maximum_size", [](Pack& p) { p.size = kMaxEntryBytes + 1; }),
      malformed("a_packed_entry_whose_size_has_the_sign_bit", [](Pack& p) { p.size = UINT64_MAX; }),
      // 32 MiB of zeros in 3 KB: the ratio is refused before memory is allocated.
      malformed("a_decompression_bomb", [](Pack& p) { p = {.entry = std::string(32 << 20, 0)}; }),
      malformed("a_packed_entry_of_another_key",
                [](Pack& p) { p = {.entry = entry_file(key_number(2), artifact_of(key_number(2), 300))}; }),
      malformed("a_packed_entry_in_a_packed_entry", [](Pack& p) { p = {.entry = Pack{p.entry}.text()}; }),
      malformed("a_packed_entry_with_trailing_bytes_in_its_entry", [](Pack& p) { p = {.entry = p.entry + "x"}; }),
  };
}

std::vector<Scenario> content_scenarios() {
  const auto other = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "content_mismatch", Reach::Content, std::move(plant)};
  };
  const auto signed_wrongly = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "entry_malformed", Reach::Content, std::move(plant)};
  };
  return {
      {"no_content", "content_missing", Reach::Content,
       [](Stage& s) {
         (void)s.object_store->remove(ObjectStore::Bucket::Cas, s.digest, std::chrono::seconds(0)).has_value();
       }},
      other("an_empty_content", [](Stage& s) { s.content(""); }),
      other("a_truncated_content", [](Stage& s) { s.content(s.entry.substr(0, s.entry.size() - 1)); }),
      other("a_longer_content", [](Stage& s) { s.content(s.entry + "x"); }),
      other("an_endless_content", [](Stage& s) { s.content(s.entry + std::string(1 << 20, 'x')); }),
      other("the_entry_of_another_key",
            [](Stage& s) { s.content(entry_file(s.other_key, artifact_of(s.other_key, 300))); }),
      // A complete entry of this key: code that parsed it before comparing its digest would find nothing wrong.
      other("another_entry_of_this_key", [](Stage& s) { s.content(entry_file(s.key, artifact_of(s.other_key, 300))); }),
      // Not an entry: code that parsed it first would call it malformed.
      other("garbage_of_the_right_size", [](Stage& s) { s.content(payload_of(s.key, s.entry.size())); }),
      other("a_size_that_is_less_than_the_contents",
            [](Stage& s) { s.action(file_field(s.digest.hex(), s.entry.size() - 1) + field(5, s.ci().encode())); }),
      other("a_size_that_is_more_than_the_contents",
            [](Stage& s) { s.action(file_field(s.digest.hex(), s.entry.size() + 1) + field(5, s.ci().encode())); }),
      signed_wrongly("signed_garbage", [](Stage& s) { s.sign_content(payload_of(s.key, 500)); }),
      signed_wrongly("a_signed_entry_of_another_key",
                     [](Stage& s) { s.sign_content(entry_file(s.other_key, artifact_of(s.other_key, 300))); }),
      {"a_signed_entry_of_a_newer_version", "newer_version", Reach::Content,
       [](Stage& s) { s.sign_content(std::string(s.entry).replace(8, 1, "\x02")); }},
      signed_wrongly("a_signed_entry_of_version_0",
                     [](Stage& s) { s.sign_content(std::string(s.entry).replace(8, 1, "\0"s)); }),
      signed_wrongly("a_signed_content_of_20_bytes", [](Stage& s) { s.sign_content(s.entry.substr(0, 20)); }),
      signed_wrongly("a_signed_entry_with_trailing_bytes", [](Stage& s) { s.sign_content(s.entry + "x"); }),
      signed_wrongly("a_signed_entry_whose_lengths_run_past_its_end",
                     [](Stage& s) {
                       std::string entry = s.entry;
                       entry.replace(16, 8, BinaryWriter().u64(kMaxEntryBytes).bytes());
                       entry.replace(80, 8, BinaryWriter().u64(xxh3(as_bytes(entry.substr(0, 80)))).bytes());
                       s.sign_content(entry);
                     }),
  };
}

std::vector<Scenario> hint_scenarios() {
  const auto bad = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "hint_malformed", Reach::Hints, std::move(plant)};
  };
  const auto hostile = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "hint_unsafe_path", Reach::Hints, std::move(plant)};
  };
  return {
      bad("garbage_dependency_sets", [](Stage& s) { s.hint_body(payload_of(s.key, 400)); }),
      bad("an_empty_object_of_dependency_sets", [](Stage& s) { s.hint_body(""); }),
      bad("an_entry_instead_of_dependency_sets", [](Stage& s) { s.hint_body(s.honest()); }),
      bad("the_dependency_sets_of_another_request", [](Stage& s) { s.hint_file(encode_hints(request_number(2), {})); }),
      bad("truncated_dependency_sets",
          [](Stage& s) {
            const std::string file = encode_hints(s.request, std::vector<std::string_view>{"closure"});
            s.hint_file(file.substr(0, file.size() - 1));
          }),
      bad("trailing_bytes_after_the_dependency_sets", [](Stage& s) { s.hint_file(encode_hints(s.request, {}) + "x"); }),
      bad("dependency_sets_of_another_version",
          [](Stage& s) { s.hint_file(encode_hints(s.request, {}).replace(8, 1, "\x02")); }),
      bad("a_garbage_dependency_set", [](Stage& s) { s.hints({payload_of(s.key, 100)}); }),
      bad("a_corrupt_dependency_set",
          [](Stage& s) {
            const std::string dependency_set = dependency_set_number(1).encode();
            std::string file = encode_hints(s.request, std::vector<std::string_view>{dependency_set});
            file.back() ^= 1;
            s.hint_file(file);
          }),
      bad("17_dependency_sets",
          [](Stage& s) {
            // The format of encode_hints, but with more than its maximum of sixteen.
            BinaryWriter out;
            out.raw("KILNHNT1", 8).u32(1).u32(17).digest(s.request.digest);
            const std::string dependency_set = dependency_set_number(1).encode();
            for (int i = 0; i < 17; ++i) out.u32(dependency_set.size()).u64(xxh3(as_bytes(dependency_set)));
            out.u64(xxh3(as_bytes(out.bytes())));
            for (int i = 0; i < 17; ++i) out.raw(dependency_set.data(), dependency_set.size());
            s.hint_file(out.bytes());
          }),
      bad("more_than_4_MiB_of_closures", [](Stage& s) { s.hint_naming(std::string(5 << 20, 'x')); }),
      bad("a_name_with_a_zero_in_it", [](Stage& s) { s.hint_naming("a\0b"s); }),
      hostile("an_absolute_root", [](Stage& s) { s.hint_naming("/etc/shadow", DependencySet::kAbsolute); }),
      hostile("an_absolute_name_below_a_root", [](Stage& s) { s.hint_naming("/etc/shadow"); }),
      hostile("an_absolute_name_below_the_working_directory",
              [](Stage& s) { s.hint_naming("/dev/zero", DependencySet::kWorkingDirectory); }),
      hostile("a_dot_dot_component", [](Stage& s) { s.hint_naming("../secret.h"); }),
      hostile("a_dot_dot_component_in_the_middle", [](Stage& s) { s.hint_naming("a/b/../../../secret.h"); }),
      hostile("a_dot_dot_component_at_the_end", [](Stage& s) { s.hint_naming("a/.."); }),
      hostile("a_dot_component", [](Stage& s) { s.hint_naming("a/./b.h"); }),
      hostile("an_empty_name", [](Stage& s) { s.hint_naming(""); }),
      hostile("a_directory_instead_of_a_file", [](Stage& s) { s.hint_naming("a/"); }),
      hostile("an_unsafe_dependency_set_after_a_valid_one",
              [](Stage& s) {
                DependencySet dependency_set = dependency_set_number(2);
                dependency_set.items[0].name = "../x";
                s.hints({dependency_set_number(1).encode(), dependency_set.encode()});
              }),
      hostile("paths_of_another_host",
              [](Stage& s) {
                DependencySet dependency_set = dependency_set_number(1);
                dependency_set.embeds_paths = true;
                dependency_set.working_directory = "/home/user";
                dependency_set.root_paths = {"/opt"};
                s.hints({dependency_set.encode()});
              }),
      hostile("times_of_another_host",
              [](Stage& s) {
                DependencySet dependency_set = dependency_set_number(1);
                dependency_set.embeds_mtimes = true;
                s.hints({dependency_set.encode()});
              }),
  };
}

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (auto* scenarios : {&action_scenarios, &statement_scenarios, &policy_scenarios, &content_scenarios,
                          &packed_scenarios, &hint_scenarios}) {
    for (Scenario& scenario : scenarios()) all.push_back(std::move(scenario));
  }
  return all;
}

}  // namespace kiln::test
