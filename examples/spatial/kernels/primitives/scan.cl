// The exclusive sum of 32-bit numbers: offsets[i] is the sum of the values before i; offsets[count] and `total` are the
// sum of all. Sums that exceed 32 bits are UINT_MAX, which no caller accepts as a size. Always three launches,
// regardless of the count. The offsets can overwrite the values.

ulong sum_of_run(uint count, uint run, __global const uint* values) {
  const uint last = end_of_run(count, run);
  ulong sum = 0;
  for (uint i = first_of_run(count, run); i < last; ++i) sum += values[i];
  return sum;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_sums(uint count, uint run, __global const uint* values, __global ulong* tiles) {
  __local ulong sums[GROUP + 1];
  sum_before(sums, sum_of_run(count, run, values));
  if (get_local_id(0) == 0) tiles[get_group_id(0)] = sums[GROUP];
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_tiles(uint tile_count, __global ulong* tiles, __global uint* total) {
  __local ulong sums[GROUP + 1];
  scan_tiles_of(tile_count, tiles, total, sums);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_offsets(uint count, uint run, __global const uint* values, __global const ulong* tiles,
                  __global const uint* total, __global uint* offsets) {
  __local ulong sums[GROUP + 1];
  ulong before = tiles[get_group_id(0)] + sum_before(sums, sum_of_run(count, run, values));
  const uint last = end_of_run(count, run);
  for (uint i = first_of_run(count, run); i < last; ++i) {
    const uint own = values[i];
    offsets[i] = (uint)min(before, (ulong)UINT_MAX);
    before += own;
  }
  if (get_global_id(0) == 0) offsets[count] = *total;
}
