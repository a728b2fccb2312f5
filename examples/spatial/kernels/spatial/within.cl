// Tests whether point i is within polygon i or, with a stride of 0, within polygon 0. The filter keeps the rows whose
// box surrounds the point, and compact.cl numbers them, so that the refinement has no idle work items.

// One work item writes one word of the bitmaps, which is 32 rows.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void within_filter(int rows, int stride, __global const uint* point_valid, __global const double* px,
                   __global const double* py, int polygon_rows, __global const uint* polygon_valid,
                   __global const double* sides, __global uint* valid, __global uint* inside, __global uchar* flags) {
  const bool polygon_is_valid = stride != 0 || is_valid(polygon_valid, 0);
  const size_t words = ((size_t)rows + 31) / 32;
  const size_t end = end_of_items(words);
  for (size_t word = first_item(words); word < end; word += ROWS) {
    const uint bits = stride != 0 ? polygon_valid[word] : UINT_MAX;
    valid[word] = polygon_is_valid ? point_valid[word] & bits : 0;
    inside[word] = 0;
    const int first = (int)word * 32;
    const int last = first + min(rows - first, 32);
    for (int row = first; row < last; ++row) {
      flags[row] = surrounds(sides, polygon_rows, row * stride, px[row], py[row]) ? 1 : 0;
    }
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void within_refine(__global const uint* count, __global const uint* rows, int stride, __global const double* px,
                   __global const double* py, __global const int* rings, __global const int* offsets,
                   __global const double* x, __global const double* y, __global uint* inside) {
  const size_t end = end_of_items(*count);
  for (size_t i = first_item(*count); i < end; i += ROWS) {
    const int row = (int)rows[i];
    const int polygon = row * stride;
    if (!is_inside(px[row], py[row], rings[polygon], rings[polygon + 1], offsets, x, y)) continue;
    atomic_or(inside + (row >> 5), 1u << (row & 31));
  }
}
