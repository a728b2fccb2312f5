// Selects the candidates of a join that are pairs of its result.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void refine_candidates(uint count, __global const ulong* keys, int bits, __global const double* px,
                       __global const double* py, __global const int* rings, __global const int* offsets,
                       __global const double* x, __global const double* y, __global uchar* flags) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const int point = (int)(keys[i] >> bits);
    const int polygon = (int)(keys[i] & (((ulong)1 << bits) - 1));
    flags[i] = is_inside(px[point], py[point], rings[polygon], rings[polygon + 1], offsets, x, y) ? 1 : 0;
  }
}
