// The numbers of those whose flag is not zero, in their order, and how many there are. Three launches, whatever the
// count. `indices` has room for all of them, so that nobody need wait for the number.

uint count_flags(uint count, __global const uchar* flags, uint first) {
  uint mine = 0;
  if (first + ITEMS <= count) {
    for (uint i = 0; i < ITEMS; ++i) mine += flags[first + i] != 0 ? 1u : 0u;
  } else {
    for (uint i = first; i < count; ++i) mine += flags[i] != 0 ? 1u : 0u;
  }
  return mine;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void compact_counts(uint count, __global const uchar* flags, __global ulong* tiles) {
  __local ulong sums[GROUP + 1];
  const uint first = (uint)get_group_id(0) * TILE + (uint)get_local_id(0) * ITEMS;
  sum_before(sums, count_flags(count, flags, first));
  if (get_local_id(0) == 0) tiles[get_group_id(0)] = sums[GROUP];
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void compact_tiles(uint tile_count, __global ulong* tiles, __global uint* total) {
  __local ulong sums[GROUP + 1];
  scan_tiles_of(tile_count, tiles, total, sums);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void compact_indices(uint count, __global const uchar* flags, __global const ulong* tiles, __global uint* indices) {
  __local ulong sums[GROUP + 1];
  const uint first = (uint)get_group_id(0) * TILE + (uint)get_local_id(0) * ITEMS;
  uint next = (uint)(tiles[get_group_id(0)] + sum_before(sums, count_flags(count, flags, first)));
  const uint last = min(first + ITEMS, max(first, count));
  for (uint i = first; i < last; ++i) {
    if (flags[i] != 0) indices[next++] = i;
  }
}
