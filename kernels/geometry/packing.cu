// Columns to and from WKB, the standard's bytes for a geometry: a byte that says in which order the others are, a type,
// and for all but points a count before what is counted. What is written is little-endian; what is read may be either.
// Null rows take no bytes. An empty point is two NaNs, all else that is empty has a count of 0.
#include "block.cuh"

namespace {

enum Kind : unsigned { kPoint = 1, kLine = 2, kPolygon = 3, kMultiPoint = 4, kMultiLine = 5, kMultiPolygon = 6 };
enum Outcome : unsigned char { kGood = 0, kTruncated = 1, kOtherKind = 2, kBadOrder = 3, kTrailing = 4, kHasMore = 5 };

constexpr long long kHead = 5;  // order and type
constexpr long long kCount = 4;
constexpr long long kPointSize = 16;

// Bytes one by one: nothing in WKB is aligned.
struct Writer {
  unsigned char* at;
  __device__ void put(unsigned char byte) { *at++ = byte; }
  __device__ void put(unsigned value) {
    for (int i = 0; i < 4; ++i) put(static_cast<unsigned char>(value >> (8 * i)));
  }
  __device__ void put(double value) {
    const unsigned long long bits = static_cast<unsigned long long>(__double_as_longlong(value));
    for (int i = 0; i < 8; ++i) put(static_cast<unsigned char>(bits >> (8 * i)));
  }
  __device__ void put(Point p) {
    put(p.x);
    put(p.y);
  }
  __device__ void head(Kind kind) {
    put(static_cast<unsigned char>(1));
    put(static_cast<unsigned>(kind));
  }
};

// Reads nothing past the end: `good` is false from the first attempt on, and all that is read then is 0.
struct Reader {
  const unsigned char* at;
  const unsigned char* end;
  bool little = true;
  bool good = true;

  __device__ unsigned long long bytes(int count) {
    if (end - at < count) {
      good = false;
      at = end;
      return 0;
    }
    unsigned long long value = 0;
    for (int i = 0; i < count; ++i) {
      value |= static_cast<unsigned long long>(at[i]) << (8 * (little ? i : count - 1 - i));
    }
    at += count;
    return value;
  }
  __device__ unsigned number() { return static_cast<unsigned>(bytes(4)); }
  __device__ double real() { return __longlong_as_double(static_cast<long long>(bytes(8))); }
  __device__ Point point() {
    const double x = real();
    return {x, real()};
  }
  // A count is believed only as far as there are bytes for so many things.
  __device__ int count(long long least_size) {
    const unsigned value = number();
    if (good && static_cast<long long>(value) * least_size > end - at) good = false;
    return good ? static_cast<int>(value) : 0;
  }
  __device__ Outcome head(Kind wanted) {
    const unsigned order = static_cast<unsigned>(bytes(1));
    if (!good) return kTruncated;
    if (order > 1) return kBadOrder;
    little = order == 1;
    const unsigned kind = number();
    if (!good) return kTruncated;
    // Three and four dimensions have other numbers: thousands more in the standard, high bits in PostGIS.
    if (kind != static_cast<unsigned>(wanted)) return (kind & 0xffu) == wanted || kind > 999 ? kHasMore : kOtherKind;
    return kGood;
  }
  __device__ Outcome finish() const {
    if (!good) return kTruncated;
    return at == end ? kGood : kTrailing;
  }
};

__device__ long long size_of_polygon(Range rings, const int* offsets) {
  const long long points = offsets[rings.last] - offsets[rings.first];
  return kHead + kCount + rings.size() * kCount + points * kPointSize;
}

}  // namespace

// How many bytes each polygon takes: what has to be summed before they can be written.
extern "C" __global__ void wkb_sizes_of_polygons(Polygons polygons, long long* sizes) {
  for (int row = first_row(); row < polygons.rows; row += row_step()) {
    long long size = 0;
    if (polygons.valid[row]) size = size_of_polygon(polygons.rings_of(row), polygons.offsets);
    sizes[row] = size;
  }
}

// Points all have the same size; those that are null are left out, so the place of one is 21 times the number of valid
// rows before it.
extern "C" __global__ void wkb_of_points(Points points, const int* valid_before, unsigned char* bytes) {
  for (int row = first_row(); row < points.rows; row += row_step()) {
    if (!points.valid[row]) continue;
    Writer writer = {bytes + static_cast<long long>(valid_before[row]) * (kHead + kPointSize)};
    writer.head(kPoint);
    writer.put(points.at[row]);
  }
}

// One warp a row: a lane writes every 32nd coordinate.
extern "C" __global__ void wkb_of_lines(Lines lines, const long long* offsets, unsigned char* bytes) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    if (!lines.valid[row]) continue;
    const Range range = lines.coordinates(row);
    if (lane() == 0) {
      Writer writer = {bytes + offsets[row]};
      writer.head(kLine);
      writer.put(static_cast<unsigned>(range.size()));
    }
    unsigned char* const first = bytes + offsets[row] + kHead + kCount;
    for (int i = lane(); i < range.size(); i += 32) {
      Writer writer = {first + i * kPointSize};
      writer.put(lines.at[range.first + i]);
    }
  }
}

// One warp a row, ring after ring.
extern "C" __global__ void wkb_of_polygons(Polygons polygons, const long long* offsets, unsigned char* bytes) {
  for (int row = first_warp(); row < polygons.rows; row += warp_step()) {
    if (!polygons.valid[row]) continue;
    const Range rings = polygons.rings_of(row);
    unsigned char* at = bytes + offsets[row];
    if (lane() == 0) {
      Writer writer = {at};
      writer.head(kPolygon);
      writer.put(static_cast<unsigned>(rings.size()));
    }
    at += kHead + kCount;
    for (int number = rings.first; number < rings.last; ++number) {
      const Range ring = polygons.ring(number);
      if (lane() == 0) {
        Writer writer = {at};
        writer.put(static_cast<unsigned>(ring.size()));
      }
      at += kCount;
      for (int i = lane(); i < ring.size(); i += 32) {
        Writer writer = {at + i * kPointSize};
        writer.put(polygons.at[ring.first + i]);
      }
      at += ring.size() * kPointSize;
    }
  }
}

// Looks at polygons in WKB without keeping anything: how many rings and coordinates each has, and whether its bytes are
// what they say. Rows whose offsets are the same have no bytes, and are null where the bitmap says so and broken where
// it does not.
extern "C" __global__ void wkb_survey_polygons(const unsigned char* bytes, const long long* offsets, Validity valid,
                                               int rows, int* ring_counts, int* coordinate_counts,
                                               unsigned char* outcomes) {
  for (int row = first_row(); row < rows; row += row_step()) {
    int rings = 0;
    int coordinates = 0;
    Outcome outcome = kGood;
    if (valid[row]) {
      Reader reader = {bytes + offsets[row], bytes + offsets[row + 1]};
      outcome = reader.head(kPolygon);
      if (outcome == kGood) {
        rings = reader.count(kCount);
        for (int ring = 0; ring < rings && reader.good; ++ring) {
          const int size = reader.count(kPointSize);
          coordinates += size;
          reader.at += size * kPointSize;
        }
        outcome = reader.finish();
      }
    }
    const bool good = outcome == kGood;
    ring_counts[row] = good ? rings : 0;
    coordinate_counts[row] = good ? coordinates : 0;
    outcomes[row] = static_cast<unsigned char>(outcome);
  }
}

// Reads what the survey found good, into the places that its sums give. `rings` and `first_coordinates` are those sums,
// by row; the offsets of each ring are written here.
extern "C" __global__ void wkb_read_polygons(const unsigned char* bytes, const long long* offsets, Validity valid,
                                             int rows, const unsigned char* outcomes, const int* rings,
                                             const int* first_coordinates, int* ring_offsets, double* xs, double* ys) {
  for (int row = first_row(); row < rows; row += row_step()) {
    if (!valid[row] || outcomes[row] != kGood) continue;
    Reader reader = {bytes + offsets[row], bytes + offsets[row + 1]};
    reader.head(kPolygon);
    int next = first_coordinates[row];
    const int count = reader.count(kCount);
    for (int ring = 0; ring < count; ++ring) {
      ring_offsets[rings[row] + ring] = next;
      const int size = reader.count(kPointSize);
      for (int i = 0; i < size; ++i, ++next) {
        const Point p = reader.point();
        xs[next] = p.x;
        ys[next] = p.y;
      }
    }
  }
  // Somebody has to write the end of the last ring.
  if (first_row() == 0) ring_offsets[rings[rows]] = first_coordinates[rows];
}
