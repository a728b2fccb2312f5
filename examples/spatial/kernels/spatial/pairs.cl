// Keys of pairs: gathers the selected keys and decodes them.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void gather_keys(uint count, __global const uint* indices, __global const ulong* keys, __global ulong* gathered) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) gathered[i] = keys[indices[i]];
}

// Decodes each key into the point's row and the polygon's row.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void pairs_of_keys(uint count, __global const ulong* keys, int bits, __global int2* pairs) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    pairs[i] = (int2)((int)(keys[i] >> bits), (int)(keys[i] & (((ulong)1 << bits) - 1)));
  }
}
