// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "packing.cu"

namespace kiln::test {
namespace {

// A polygon with a hole, an empty one and a null one.
struct Packed {
  Packed() {
    long long sizes[3];
    launch({1}, 32, [&] { wkb_sizes_of_polygons(column(), sizes); });
    for (const long long size : sizes) offsets.push_back(offsets.back() + size);
    bytes.resize(static_cast<std::size_t>(offsets.back()));
    launch({1}, 64, [&] { wkb_of_polygons(column(), offsets.data(), bytes.data()); });
  }
  Polygons column() const { return {3, {&valid}, rings, ring_offsets, {xs, ys}}; }

  const double xs[10] = {0, 4, 4, 0, 0, 1, 1, 2, 2, 1};
  const double ys[10] = {0, 0, 4, 4, 0, 1, 2, 2, 1, 1};
  const int rings[4] = {0, 2, 2, 2};
  const int ring_offsets[3] = {0, 5, 10};
  const unsigned valid = 0b011;
  std::vector<long long> offsets{0};
  std::vector<unsigned char> bytes;
};

struct Surveyed {
  int parts = -1;
  int rings = -1;
  int coordinates = -1;
  unsigned char outcome = 255;
};
Surveyed survey_multipolygon(const std::vector<unsigned char>& bytes) {
  Surveyed seen;
  const long long offsets[] = {0, static_cast<long long>(bytes.size())};
  threadIdx = blockIdx = {};
  blockDim = gridDim = {1, 1, 1};
  wkb_survey<MultiPolygonShape>(bytes.data(), offsets, {nullptr}, 1, &seen.parts, &seen.rings, &seen.coordinates,
                                &seen.outcome);
  return seen;
}

TEST(PackingKernels, ReadWrittenWkb) {
  const Packed packed;
  EXPECT_EQ(packed.offsets, (std::vector<long long>{0, 177, 186, 186}))
      << "an empty polygon takes 9 bytes, a null one none";
  int parts[3], rings[3], coordinates[3];
  unsigned char outcomes[3];
  launch({1}, 32, [&] {
    wkb_survey<PolygonShape>(packed.bytes.data(), packed.offsets.data(), {&packed.valid}, 3, parts, rings, coordinates,
                             outcomes);
  });
  EXPECT_EQ(std::vector<int>(rings, rings + 3), (std::vector<int>{2, 0, 0}));
  EXPECT_EQ(std::vector<int>(coordinates, coordinates + 3), (std::vector<int>{10, 0, 0}));
  const int none[] = {0, 0, 0, 0}, first_rings[] = {0, 2, 2, 2}, first_coordinates[] = {0, 10, 10, 10};
  int offsets[3];
  double xs[10], ys[10];
  launch({1}, 32, [&] {
    wkb_read<PolygonShape>(packed.bytes.data(), packed.offsets.data(), {&packed.valid}, 3, outcomes, none, first_rings,
                           first_coordinates, {nullptr, offsets, xs, ys});
  });
  EXPECT_TRUE(std::equal(xs, xs + 10, packed.xs) && std::equal(ys, ys + 10, packed.ys));
  EXPECT_TRUE(std::equal(offsets, offsets + 3, packed.ring_offsets));
}

TEST(PackingKernels, ReadBothByteOrdersAndRejectTruncatedInput) {
  const Packed packed;
  std::vector<unsigned char> bytes = {0, 0, 0, 0, 6, 0, 0, 0, 1};  // a multipolygon of one part, big-endian
  bytes.insert(bytes.end(), packed.bytes.begin(), packed.bytes.begin() + 177);
  const Surveyed whole = survey_multipolygon(bytes);
  EXPECT_EQ(whole.outcome, kGood);
  EXPECT_EQ(whole.parts, 1);
  EXPECT_EQ(whole.rings, 2);
  EXPECT_EQ(whole.coordinates, 10);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<unsigned char> shorter(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(survey_multipolygon(shorter).outcome, kGood) << size;
  }
  bytes.push_back(0);
  EXPECT_EQ(survey_multipolygon(bytes).outcome, kTrailing);
}

}  // namespace
}  // namespace kiln::test
