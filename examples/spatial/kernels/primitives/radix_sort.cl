// One pass of a radix sort of 64-bit keys by 8 of their bits: count the digits of each tile, scan the counts (scan.cl),
// scatter. The pass is stable, so passes from the lowest bits up sort by all bits. A work group processes a tile. Each
// of its items processes a run of adjacent keys and has its own counters, so there are no atomics and the result is
// deterministic. A run has at most 1023 keys, so that 16 bits can count a tile's keys.
#define SORTERS 64u
#define DIGITS 256u

uint digit_of(ulong key, uint shift) { return (uint)(key >> shift) & (DIGITS - 1u); }

// counters[digit * SORTERS + item]
void count_digits(uint count, uint run, uint shift, __global const ulong* keys, __local ushort* counters) {
  const uint me = (uint)get_local_id(0);
  for (uint digit = 0; digit < DIGITS; ++digit) counters[digit * SORTERS + me] = 0;
  const uint last = end_of_run(count, run);
  for (uint i = first_of_run(count, run); i < last; ++i) counters[digit_of(keys[i], shift) * SORTERS + me] += 1;
  barrier(CLK_LOCAL_MEM_FENCE);
}

// counts[digit * tiles + tile], so that their scan yields the position of each tile's keys of each digit.
__kernel __attribute__((reqd_work_group_size(SORTERS, 1, 1)))
void sort_counts(uint count, uint run, uint shift, __global const ulong* keys, __global uint* counts) {
  __local ushort counters[DIGITS * SORTERS];
  count_digits(count, run, shift, keys, counters);
  for (uint digit = (uint)get_local_id(0); digit < DIGITS; digit += SORTERS) {
    uint sum = 0;
    for (uint i = 0; i < SORTERS; ++i) sum += counters[digit * SORTERS + i];
    counts[digit * (uint)get_num_groups(0) + (uint)get_group_id(0)] = sum;
  }
}

__kernel __attribute__((reqd_work_group_size(SORTERS, 1, 1)))
void sort_scatter(uint count, uint run, uint shift, __global const ulong* keys, __global const uint* offsets,
                  __global ulong* sorted) {
  __local ushort counters[DIGITS * SORTERS];
  count_digits(count, run, shift, keys, counters);
  const uint me = (uint)get_local_id(0);
  for (uint digit = me; digit < DIGITS; digit += SORTERS) {
    uint before = 0;
    for (uint i = 0; i < SORTERS; ++i) {
      const uint own = counters[digit * SORTERS + i];
      counters[digit * SORTERS + i] = (ushort)before;
      before += own;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __global const uint* const places = offsets + get_group_id(0);
  const uint last = end_of_run(count, run);
  for (uint i = first_of_run(count, run); i < last; ++i) {
    const ulong key = keys[i];
    const uint digit = digit_of(key, shift);
    const uint rank = counters[digit * SORTERS + me]++;
    sorted[places[digit * (uint)get_num_groups(0)] + rank] = key;
  }
}
