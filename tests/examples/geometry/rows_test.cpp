// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "rows.cu"

namespace kiln::test {
namespace {

constexpr int kRows = 3000;
using Bits = std::vector<unsigned>;

bool bit(const Bits& words, int row) { return ((words[static_cast<std::size_t>(row / 32)] >> (row % 32)) & 1U) != 0; }

// Returns 1 for true, 0 for false, -1 for unknown.
int answer(const Bits& values, const Bits& valid, int row) { return bit(valid, row) ? bit(values, row) : -1; }
int expected(int how, int a, int b) {
  if (how == kAndNot) b = b < 0 ? b : 1 - b;
  const bool unknown = a < 0 || b < 0;
  if (how == kOr) return a == 1 || b == 1 ? 1 : unknown ? -1 : 0;
  if (how == kXor) return unknown ? -1 : a ^ b;
  return a == 0 || b == 0 ? 0 : unknown ? -1 : 1;
}

TEST(RowKernels, CombineMasksLikeSqlAndSelectTrueRows) {
  std::mt19937 random(4);
  Bits a(94), a_valid(94), b(94), b_valid(94), values(94), valid(94);
  for (Bits* words : {&a, &a_valid, &b, &b_valid}) std::generate(words->begin(), words->end(), std::ref(random));
  for (const int how : {kAnd, kOr, kAndNot, kXor}) {
    launch({1}, 64, [&] {
      combine_answers(how, a.data(), a_valid.data(), b.data(), b_valid.data(), kRows, values.data(), valid.data());
    });
    for (int row = 0; row < kRows; ++row) {
      ASSERT_EQ(answer(values, valid, row), expected(how, answer(a, a_valid, row), answer(b, b_valid, row)));
    }
  }
  std::vector<int> counts(3), offsets{0}, wanted;
  launch({3}, 32, [&] { count_taken(values.data(), valid.data(), kRows, counts.data()); });
  for (const int count : counts) offsets.push_back(offsets.back() + count);
  for (int row = 0; row < kRows; ++row) {
    if (answer(values, valid, row) == 1) wanted.push_back(row);
  }
  std::vector<int> taken(static_cast<std::size_t>(offsets.back()));
  launch({3}, 1024, [&] { take_rows(values.data(), valid.data(), kRows, offsets.data(), taken.data()); });
  EXPECT_EQ(taken, wanted);
}

TEST(RowKernels, SelectionPreservesNullAndEmpty) {
  const double xs[] = {1, 2, 3, 4}, ys[] = {5, 6, 7, 8};
  const int offsets[] = {0, 2, 2, 4};  // the last row is null, over uninitialized coordinates
  const unsigned valid = 0b011;
  const Lines lines{3, {&valid}, offsets, {xs, ys}};
  const int taken[] = {2, 1, -1, 0};
  int sizes[4];
  unsigned taken_valid = 0;
  launch({1}, 32, [&] { measure_taken(lines, taken, 4, sizes, &taken_valid); });
  EXPECT_EQ(std::vector<int>(sizes, sizes + 4), (std::vector<int>{0, 0, 0, 2}));
  EXPECT_EQ(taken_valid, 0b1010U);
  const int out_offsets[] = {0, 0, 0, 0, 2};
  double x[2], y[2];
  launch({1}, 32, [&] { gather_coordinates(lines, taken, 4, out_offsets, x, y); });
  EXPECT_EQ(x[0], 1);
  EXPECT_EQ(y[1], 6);
}

}  // namespace
}  // namespace kiln::test
