// Ranks of groups: rows are sorted by their key (radix_sort.cl), and unique.cl finds the first row of each group.

// A key of the sort is the row above the group's key, whose order is that of unsigned numbers.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void group_keys(int rows, __global const int* groups, __global ulong* keys, __global uint* status) {
  if (get_global_id(0) == 0) *status = 0;
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    keys[row] = ((ulong)row << 32) | ((uint)groups[row] ^ 0x80000000u);
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void group_ranks(int rows, __global const ulong* keys, __global const uint* runs, __global const int* heads,
                 __global uint* ranks) {
  const size_t end = end_of_items(rows);
  for (size_t i = first_item(rows); i < end; i += ROWS) {
    ranks[keys[i] >> 32] = (uint)row_of(heads, (int)*runs, (int)i);
  }
}

// Writes the key of each group, and that it is not null if one of its rows is not. One work item writes one word of the
// bitmap.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void group_rows(int groups, __global const ulong* keys, __global const int* heads, __global const uint* valid,
                __global int* group_of, __global uint* group_valid) {
  const size_t words = ((size_t)groups + 31) / 32;
  const size_t end = end_of_items(words);
  for (size_t word = first_item(words); word < end; word += ROWS) {
    const int first = (int)word * 32;
    const int last = first + min(groups - first, 32);
    uint bits = 0;
    for (int group = first; group < last; ++group) {
      int i = heads[group];
      group_of[group] = (int)((uint)keys[i] ^ 0x80000000u);
      while (i < heads[group + 1] && !is_valid(valid, (int)(keys[i] >> 32))) ++i;
      if (i < heads[group + 1]) bits |= 1u << (group - first);
    }
    group_valid[word] = bits;
  }
}
