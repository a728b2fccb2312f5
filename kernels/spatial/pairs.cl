// Keys of pairs: those that were chosen, and what they stand for.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void gather_keys(uint count, __global const uint* indices, __global const ulong* keys, __global ulong* gathered) {
  for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) gathered[i] = keys[indices[i]];
}

// The point's row and the polygon's of each.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void pairs_of_keys(uint count, __global const ulong* keys, int bits, __global int2* pairs) {
  for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
    pairs[i] = (int2)((int)(keys[i] >> bits), (int)(keys[i] & (((ulong)1 << bits) - 1)));
  }
}
