// Writes the indices of the nonzero flags, in order, and their number. Always three launches, regardless of the count.
// `indices` has space for all of them, so that the host need not wait for the number.

uint count_flags(uint count, uint run, __global const uchar* flags) {
  const uint last = end_of_run(count, run);
  uint flagged = 0;
  for (uint i = first_of_run(count, run); i < last; ++i) flagged += flags[i] != 0 ? 1u : 0u;
  return flagged;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void compact_counts(uint count, uint run, __global const uchar* flags, __global ulong* tiles) {
  __local ulong sums[GROUP + 1];
  sum_before(sums, count_flags(count, run, flags));
  if (get_local_id(0) == 0) tiles[get_group_id(0)] = sums[GROUP];
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void compact_tiles(uint tile_count, __global ulong* tiles, __global uint* total) {
  __local ulong sums[GROUP + 1];
  scan_tiles_of(tile_count, tiles, total, sums);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void compact_indices(uint count, uint run, __global const uchar* flags, __global const ulong* tiles,
                     __global uint* indices) {
  __local ulong sums[GROUP + 1];
  uint next = (uint)(tiles[get_group_id(0)] + sum_before(sums, count_flags(count, run, flags)));
  const uint last = end_of_run(count, run);
  for (uint i = first_of_run(count, run); i < last; ++i) {
    if (flags[i] != 0) indices[next++] = i;
  }
}
