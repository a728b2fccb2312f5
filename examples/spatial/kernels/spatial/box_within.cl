// Tests whether point i is within polygon i or, with a stride of 0, within polygon 0, for a column that has only
// rectangles with sides parallel to the axes: the box is the polygon. One work item writes one word of the bitmaps.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void box_within(int rows, int stride, __global const uint* point_valid, __global const double* px,
                __global const double* py, int polygon_rows, __global const uint* polygon_valid,
                __global const double* sides, __global uint* valid, __global uint* inside) {
  const size_t words = ((size_t)rows + 31) / 32;
  const size_t end = end_of_items(words);
  for (size_t word = first_item(words); word < end; word += ROWS) {
    const uint bits = stride != 0 ? polygon_valid[word] : is_valid(polygon_valid, 0) ? UINT_MAX : 0;
    const uint known = point_valid[word] & bits;
    uint found = 0;
    const int first = (int)word * 32;
    const int last = first + min(rows - first, 32);
    for (int row = first; row < last; ++row) {
      if (surrounds(sides, polygon_rows, row * stride, px[row], py[row])) found |= 1u << (row & 31);
    }
    valid[word] = known;
    inside[word] = found & known;
  }
}
