// SPDX-License-Identifier: Apache-2.0
#include "bundle/hostile_corpus.hpp"

namespace kiln::test {
namespace {

/// A header with one changed field.
template <class T>
Hostile header(std::string name, std::string reason, std::size_t at, T value) {
  return {std::move(name), Stage::Open, std::move(reason), [at, value](Forge& forge) {
            forge.patch = [=](std::string& bytes) { std::memcpy(bytes.data() + at, &value, sizeof value); };
            return forge.build();
          }};
}

/// A row of a role with one changed field.
template <class T>
Hostile row(std::string name, std::string reason, Role role, std::size_t field, T value) {
  return {std::move(name), Stage::Asked, std::move(reason), [=](Forge& forge) {
            forge.set(forge.find(role), field, value);
            return forge.build();
          }};
}

/// A header with page entries that do not match the pages.
std::function<std::string(Forge&)> lying(std::function<void(BundleHeader&)> lie) {
  return [lie = std::move(lie)](Forge& forge) {
    forge.lie = lie;
    return forge.build();
  };
}

}  // namespace

std::vector<Hostile> hostile_headers() {
  using F = Forge;
  return {
      header("mark", "wrong magic", 0, 'X'),
      header("version", "unsupported format version 3; this kiln reads 1 and 2", F::kVersion, std::uint32_t{3}),
      header("reserved", "reserved bytes", F::kReserved, std::uint32_t{1}),
      header("second_reserved", "reserved bytes", F::kSecondReserved, std::uint32_t{1}),
      header("head_size_larger", "head size does not match", F::kHeadSize, std::uint64_t{3 * 4096}),
      header("head_size_zero", "head size does not match", F::kHeadSize, std::uint64_t{0}),
      header("head_size_endless", "head size does not match", F::kHeadSize, ~std::uint64_t{4095}),
      header("more_pages", "does not match the number of index pages", F::kPageCount, std::uint32_t{2}),
      header("endless_pages", "too many index pages", F::kPageCount, ~std::uint32_t{0}),
      header("more_rows", "does not match the number of index pages", F::kRowCount, std::uint32_t{43}),
      header("no_rows", "does not match the number of index pages", F::kRowCount, std::uint32_t{0}),
      header("no_group", "invalid number of groups", F::kGroupCount, std::uint32_t{0}),
      header("many_groups", "invalid number of groups", F::kGroupCount, std::uint32_t{66}),
      header("namespace_capital", "invalid namespace", F::kNameSpace, 'L'),
      header("namespace_two", "invalid namespace", F::kNameSpace + 10, 'x'),
      header("description_among_artifacts", "description is not in group 0", 112, std::uint32_t{1}),
      header("description_method", "unknown blob compression method 7", 116, std::uint32_t{7}),
      header("description_unaligned", "unaligned blob", 120, std::uint64_t{8}),
      header("description_outside", "extends beyond its group", 120, std::uint64_t{1} << 40),
      header("description_wraps", "extends beyond its group", 120, ~std::uint64_t{15}),
      header("description_bomb", "maximum compression ratio", 132, std::uint32_t{1} << 30),
  };
}

std::vector<Hostile> hostile_heads() {
  const auto discarded = [](std::function<void(Forge&, std::string&)> change) {
    return [change](Forge& forge) {
      forge.discard = [&forge, change](std::string& head) { change(forge, head); };
      return forge.build();
    };
  };
  return {
      whole("group_size_odd", Stage::Open, "invalid group size",
            lying([](BundleHeader& header) { header.group_sizes[1] += 8; })),
      whole("group_size_endless", Stage::Open, "invalid group size",
            lying([](BundleHeader& header) { header.group_sizes[1] = ~std::uint64_t{15}; })),
      whole("group_larger", Stage::Open, "is truncated",
            lying([](BundleHeader& header) { header.group_sizes[1] += 1 << 20; })),
      whole("group_smaller", Stage::Open, "trailing bytes",
            lying([](BundleHeader& header) { header.group_sizes[1] -= 16; })),
      {"pages_out_of_order", Stage::Open, "index pages are out of order",
       lying([](BundleHeader& header) { std::swap(header.pages[0], header.pages[1]); }), two_pages_of_members()},
      {"pages_twice", Stage::Open, "index pages are out of order",
       lying([](BundleHeader& header) { header.pages[1] = header.pages[0]; }), two_pages_of_members()},
      whole("digest", Stage::Open, "header digest mismatch",
            discarded([](Forge& forge, std::string& head) { head[forge.signed_size()] ^= 1; })),
      whole("half_a_signature", Stage::Open, "incomplete signature",
            discarded([](Forge& forge, std::string& head) { head[forge.signed_size() + 32] = 1; })),
      whole("other_half_of_a_signature", Stage::Open, "incomplete signature",
            discarded([](Forge& forge, std::string& head) { head[forge.signed_size() + 64] = 1; })),
      whole("header_padding", Stage::Open, "nonzero padding",
            discarded([](Forge&, std::string& head) { head.back() = 1; })),
      whole("something_behind", Stage::Open, "trailing bytes", [](Forge& forge) { return forge.build() + "more"; }),
      whole("cut_short", Stage::Open, "is truncated",
            [](Forge& forge) {
              std::string bytes = forge.build();
              bytes.pop_back();
              return bytes;
            }),
      whole("only_a_header", Stage::Open, "truncated head", [](Forge& forge) { return forge.build().substr(0, 4096); }),
      whole("nothing", Stage::Open, "wrong magic", [](Forge&) { return std::string(); }),
  };
}

std::vector<Hostile> hostile_rows() {
  using F = Forge;
  return {
      row("role", "unknown role 4", Role::ByKey, F::kRole, std::uint8_t{4}),
      row("form", "unknown form 6", Role::ByUnit, F::kForm, std::uint8_t{6}),
      row("no_form", "unknown form 0", Role::ByUnit, F::kForm, std::uint8_t{0}),
      row("variant", "unknown variant", Role::ByUnit, F::kVariant, 'b'),
      row("target_of_a_key", "unexpected target", Role::ByKey, F::kForm, std::uint8_t{1}),
      row("variant_of_a_closure", "unexpected target", Role::ByRequest, F::kVariant, 'a'),
      row("number_of_a_key", "invalid number", Role::ByKey, F::kNumber, std::uint32_t{1}),
      row("seventeenth_closure", "invalid number", Role::ByRequest, F::kNumber, std::uint32_t{16}),
      row("row_reserved", "reserved byte", Role::ByKey, F::kRowReserved, std::uint8_t{1}),
      row("group", "nonexistent group", Role::ByKey, F::kGroup, std::uint32_t{4}),
      row("endless_group", "nonexistent group", Role::ByKey, F::kGroup, ~std::uint32_t{0}),
      row("group_of_the_description", "points to the description", Role::ByKey, F::kGroup, std::uint32_t{0}),
      row("method", "unknown blob compression method 2", Role::ByKey, F::kMethod, std::uint32_t{2}),
      row("unaligned", "unaligned blob", Role::ByKey, F::kOffset, std::uint64_t{1}),
      row("outside", "extends beyond its group", Role::ByKey, F::kOffset, std::uint64_t{1} << 32),
      row("wraps", "extends beyond its group", Role::ByKey, F::kOffset, ~std::uint64_t{15}),
      row("digest_of_a_blob", "digest mismatch", Role::ByKey, F::kDigest, std::uint64_t{0}),
      row("bomb", "maximum compression ratio", Role::ByKey, F::kRaw, (std::uint32_t{1} << 30) - 1),
      row("no_bytes", "empty blob", Role::ByKey, F::kStored, std::uint32_t{0}),
      whole("too_long", Stage::Asked, "extends beyond its group",
            [](Forge& forge) {
              const std::size_t i = forge.find(Role::ByUnit);
              forge.set(i, F::kMethod, std::uint32_t{0});
              forge.set(i, F::kStored, std::uint32_t{1} << 20);
              forge.set(i, F::kRaw, std::uint32_t{1} << 20);
              return forge.build();
            }),
      whole("two_sizes", Stage::Asked, "sizes differ",
            [](Forge& forge) {
              const std::size_t i = forge.find(Role::ByKey);
              const std::uint32_t stored = forge.row(i).location.stored;
              forge.set(i, F::kMethod, std::uint32_t{0});
              forge.set(i, F::kRaw, stored + 1);
              return forge.build();
            }),
  };
}

std::vector<Hostile> hostile_pages() {
  return {
      whole("page_digest", Stage::Asked, "index page 0 digest mismatch",
            lying([](BundleHeader& header) { header.pages[0].digest.bytes[5] ^= 1; })),
      whole("page_first_row", Stage::Asked, "does not match the first row of index page 0",
            lying([](BundleHeader& header) { header.pages[0].first[39] ^= 1; })),
      whole("page_padding", Stage::Asked, "trailing bytes after its rows",
            [](Forge& forge) {
              forge.discard_pages = [](std::string& pages) { pages.back() = 1; };
              return forge.build();
            }),
      whole("rows_out_of_order", Stage::Asked, "rows are out of order",
            [](Forge& forge) {
              std::swap(forge.rows[2], forge.rows[3]);
              return forge.build();
            }),
      whole("two_rows_for_a_key", Stage::Asked, "duplicate index rows",
            [](Forge& forge) {
              const std::size_t i = forge.find(Role::ByKey);
              forge.rows.insert(forge.rows.begin() + static_cast<std::ptrdiff_t>(i), forge.rows[i]);
              return forge.build();
            }),
      {"rows_out_of_order_between_pages", Stage::Asked, "out of order between two pages",
       [](Forge& forge) {
         // The last row of the first page gets a digest after the first row of the second page.
         std::memset(forge.rows[kRowsPerPage - 1].data(), 0xff, 32);
         return forge.build();
       },
       two_pages_of_members()},
  };
}

}  // namespace kiln::test
