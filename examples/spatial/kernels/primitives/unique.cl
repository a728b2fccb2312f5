// The first of each run of keys that agree in their lowest 32 bits: flags for compact.cl, which writes their positions.

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void unique_flags(uint count, __global const ulong* keys, __global uchar* flags) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    flags[i] = i == 0 || (uint)keys[i] != (uint)keys[i - 1] ? 1 : 0;
  }
}

// Ends the last run.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void unique_end(uint count, __global const uint* runs, __global uint* heads) {
  if (get_global_id(0) == 0) heads[*runs] = count;
}
