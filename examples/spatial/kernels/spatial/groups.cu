// Ranks of groups: rows are sorted by their key, and unique.cu finds the first row of each group.
#include "dissolve.cuh"

// A key of the sort is the row above the group's key, whose order is that of unsigned numbers.
extern "C" __global__ void group_keys(int rows, const int* groups, Wide* keys, unsigned* status) {
  if (first_item() == 0) *status = 0;
  for (size_t row = first_item(); row < static_cast<size_t>(rows); row += item_step()) {
    keys[row] = (Wide(row) << 32) | (unsigned(groups[row]) ^ 0x80000000u);
  }
}

extern "C" __global__ void group_ranks(int rows, const Wide* keys, const unsigned* runs, const int* heads,
                                       unsigned* ranks) {
  for (size_t i = first_item(); i < static_cast<size_t>(rows); i += item_step()) {
    ranks[keys[i] >> 32] = unsigned(row_of(heads, int(*runs), int(i)));
  }
}

// Writes the key of each group, and that it is not null if one of its rows is not. One work item writes one word of the
// bitmap.
extern "C" __global__ void group_rows(int groups, const Wide* keys, const int* heads, const unsigned* valid,
                                      int* group_of, unsigned* group_valid) {
  const size_t words = (size_t(groups) + 31) / 32;
  for (size_t word = first_item(); word < words; word += item_step()) {
    const int first = int(word) * 32;
    const int last = first + smaller(groups - first, 32);
    unsigned bits = 0;
    for (int group = first; group < last; ++group) {
      int i = heads[group];
      group_of[group] = int(unsigned(keys[i]) ^ 0x80000000u);
      while (i < heads[group + 1] && !is_valid(valid, int(keys[i] >> 32))) ++i;
      if (i < heads[group + 1]) bits |= 1u << (group - first);
    }
    group_valid[word] = bits;
  }
}
