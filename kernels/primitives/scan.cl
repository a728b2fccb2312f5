// The exclusive sum of numbers of 32 bits: offsets[i] is the sum of the values before i, offsets[count] and `total` are
// the sum of all. Sums of more than 32 bits are UINT_MAX, which no caller takes for a size. Three launches, whatever
// the count; the offsets may be written over the values.

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_sums(uint count, __global const uint* values, __global ulong* tiles) {
  __local ulong sums[GROUP + 1];
  const uint first = (uint)get_group_id(0) * TILE + (uint)get_local_id(0) * ITEMS;
  ulong mine = 0;
  if (first + ITEMS <= count) {
    for (uint i = 0; i < ITEMS; ++i) mine += values[first + i];
  } else {
    for (uint i = first; i < count; ++i) mine += values[i];
  }
  sum_before(sums, mine);
  if (get_local_id(0) == 0) tiles[get_group_id(0)] = sums[GROUP];
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_tiles(uint tile_count, __global ulong* tiles, __global uint* total) {
  __local ulong sums[GROUP + 1];
  scan_tiles_of(tile_count, tiles, total, sums);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_offsets(uint count, __global const uint* values, __global const ulong* tiles, __global const uint* total,
                  __global uint* offsets) {
  __local ulong sums[GROUP + 1];
  const uint first = (uint)get_group_id(0) * TILE + (uint)get_local_id(0) * ITEMS;
  const uint last = min(first + ITEMS, max(first, count));
  uint own[ITEMS];
  ulong mine = 0;
  for (uint i = first; i < last; ++i) {
    own[i - first] = values[i];
    mine += own[i - first];
  }
  ulong before = tiles[get_group_id(0)] + sum_before(sums, mine);
  for (uint i = first; i < last; ++i) {
    offsets[i] = (uint)min(before, (ulong)UINT_MAX);
    before += own[i - first];
  }
  if (get_global_id(0) == 0) offsets[count] = *total;
}
