// The exclusive sum of 32-bit numbers: offsets[i] is the sum of the values before i; offsets[count] and `total` are the
// sum of all. Sums that exceed 32 bits are UINT_MAX, which no caller accepts as a size. Always two launches,
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

// Each group adds the tiles before its own: at most some hundred, and no launch of a single group.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_offsets(uint count, uint run, __global const uint* values, __global const ulong* tiles, __global uint* total,
                  __global uint* offsets) {
  __local ulong sums[GROUP + 1];
  const uint tile = (uint)get_group_id(0);
  ulong mine = 0;
  for (uint i = (uint)get_local_id(0); i < tile; i += GROUP) mine += tiles[i];
  sum_before(sums, mine);
  const ulong before_tile = sums[GROUP];
  barrier(CLK_LOCAL_MEM_FENCE);
  ulong before = before_tile + sum_before(sums, sum_of_run(count, run, values));
  const uint last = end_of_run(count, run);
  for (uint i = first_of_run(count, run); i < last; ++i) {
    const uint own = values[i];
    offsets[i] = (uint)min(before, (ulong)UINT_MAX);
    before += own;
  }
  if (tile + 1 == get_num_groups(0) && get_local_id(0) == 0) {
    const uint all = (uint)min(before_tile + sums[GROUP], (ulong)UINT_MAX);
    *total = all;
    offsets[count] = all;
  }
}
