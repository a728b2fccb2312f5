// Converts columns to and from WKB, the standard binary format of a geometry: a byte for the byte order, a type, and,
// except for points, a count followed by the items. The writer uses little-endian; the reader accepts both. Null rows
// take no bytes. An empty point is two NaNs; any other empty geometry has a count of 0.
#include "block.cuh"

namespace {

enum Kind : unsigned { kPoint = 1, kLine = 2, kPolygon = 3, kMultiPoint = 4, kMultiLine = 5, kMultiPolygon = 6 };
enum Outcome : unsigned char { kGood = 0, kTruncated = 1, kOtherKind = 2, kBadOrder = 3, kTrailing = 4, kHasMore = 5 };

constexpr long long kHead = 5;  // byte order and type
constexpr long long kCount = 4;
constexpr long long kPointSize = 16;

// Writes byte by byte, because nothing in WKB is aligned.
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

// Reads nothing past the end: the first attempt sets `good` to false, and all later reads return 0.
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
  // A count is accepted only if the remaining bytes can hold that many items.
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
    // Three and four dimensions have other type numbers: thousands more in the standard, high bits in PostGIS.
    if (kind != static_cast<unsigned>(wanted)) return (kind & 0xffu) == wanted || kind > 999 ? kHasMore : kOtherKind;
    return kGood;
  }
  __device__ Outcome finish() const {
    if (!good) return kTruncated;
    return at == end ? kGood : kTrailing;
  }
};

}  // namespace

// The columns that a reader fills; columns that a shape does not have are null.
struct Places {
  int* parts;  // index of each part's first ring
  int* rings;  // index of each ring's first coordinate
  double* xs;
  double* ys;
};

namespace {

// The sinks of a reader: `Counted` counts the items, `Filled` stores them.
struct Counted {
  int parts = 0;
  int rings = 0;
  int coordinates = 0;
  __device__ void part() { ++parts; }
  __device__ void ring() { ++rings; }
  // Only the number of points is read.
  __device__ void points(Reader& reader, int count) {
    coordinates += count;
    reader.at += count * kPointSize;
  }
};

struct Filled {
  Places places;
  int next_part;
  int next_ring;
  int next_coordinate;
  __device__ void part() {
    if (places.parts != nullptr) places.parts[next_part++] = next_ring;
  }
  __device__ void ring() {
    if (places.rings != nullptr) places.rings[next_ring++] = next_coordinate;
  }
  __device__ void points(Reader& reader, int count) {
    for (int i = 0; i < count; ++i, ++next_coordinate) {
      const Point p = reader.point();
      places.xs[next_coordinate] = p.x;
      places.ys[next_coordinate] = p.y;
    }
  }
};

}  // namespace

// The layout of each geometry type.
struct LineShape {
  template <class Sink>
  __device__ static Outcome read(Reader& reader, Sink& sink) {
    if (const Outcome head = reader.head(kLine); head != kGood) return head;
    sink.points(reader, reader.count(kPointSize));
    return reader.good ? kGood : kTruncated;
  }
};

struct PolygonShape {
  template <class Sink>
  __device__ static Outcome read(Reader& reader, Sink& sink) {
    if (const Outcome head = reader.head(kPolygon); head != kGood) return head;
    const int rings = reader.count(kCount);
    for (int ring = 0; ring < rings && reader.good; ++ring) {
      sink.ring();
      sink.points(reader, reader.count(kPointSize));
    }
    return reader.good ? kGood : kTruncated;
  }
};

// Its polygons are complete geometries, each with its own byte order and type.
struct MultiPolygonShape {
  template <class Sink>
  __device__ static Outcome read(Reader& reader, Sink& sink) {
    if (const Outcome head = reader.head(kMultiPolygon); head != kGood) return head;
    const int parts = reader.count(kHead + kCount);
    for (int part = 0; part < parts && reader.good; ++part) {
      sink.part();
      if (const Outcome inner = PolygonShape::read(reader, sink); inner != kGood) return inner;
    }
    return reader.good ? kGood : kTruncated;
  }
};

namespace {

__device__ long long size_of_polygon(Range rings, const int* offsets) {
  const long long points = offsets[rings.last] - offsets[rings.first];
  return kHead + kCount + rings.size() * kCount + points * kPointSize;
}

}  // namespace

// Computes the size in bytes of each polygon. The caller sums the sizes before it writes.
extern "C" __global__ void wkb_sizes_of_polygons(Polygons polygons, long long* sizes) {
  for (int row = first_row(); row < polygons.rows; row += row_step()) {
    long long size = 0;
    if (polygons.valid[row]) size = size_of_polygon(polygons.rings_of(row), polygons.offsets);
    sizes[row] = size;
  }
}

// Writes points, which all have the same size. Null points are skipped, so the position of a point is 21 times the
// number of valid rows before it.
extern "C" __global__ void wkb_of_points(Points points, const int* valid_before, unsigned char* bytes) {
  for (int row = first_row(); row < points.rows; row += row_step()) {
    if (!points.valid[row]) continue;
    Writer writer = {bytes + static_cast<long long>(valid_before[row]) * (kHead + kPointSize)};
    writer.head(kPoint);
    writer.put(points.at[row]);
  }
}

// Writes lines, one warp per row: a lane writes every 32nd coordinate.
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

// Writes polygons, one warp per row, ring after ring.
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

// Scans WKB without storing it: counts the parts, rings and coordinates of each row and checks its bytes. Null rows
// have no items and are good; a valid row without bytes is truncated.
template <class Shape>
__global__ void wkb_survey(const unsigned char* bytes, const long long* offsets, Validity valid, int rows,
                           int* part_counts, int* ring_counts, int* coordinate_counts, unsigned char* outcomes) {
  for (int row = first_row(); row < rows; row += row_step()) {
    Counted counted;
    Outcome outcome = kGood;
    if (valid[row]) {
      Reader reader = {bytes + offsets[row], bytes + offsets[row + 1]};
      outcome = Shape::read(reader, counted);
      if (outcome == kGood) outcome = reader.finish();
    }
    if (outcome != kGood) counted = Counted();
    part_counts[row] = counted.parts;
    ring_counts[row] = counted.rings;
    coordinate_counts[row] = counted.coordinates;
    outcomes[row] = static_cast<unsigned char>(outcome);
  }
}

// Reads the rows that the survey found good to the positions given by the prefix sums of its counts: `first_parts`,
// `first_rings` and `first_coordinates`, by row, each with the total at its end. Also writes the offsets of parts and
// rings.
template <class Shape>
__global__ void wkb_read(const unsigned char* bytes, const long long* offsets, Validity valid, int rows,
                         const unsigned char* outcomes, const int* first_parts, const int* first_rings,
                         const int* first_coordinates, Places places) {
  for (int row = first_row(); row < rows; row += row_step()) {
    if (!valid[row] || outcomes[row] != kGood) continue;
    Reader reader = {bytes + offsets[row], bytes + offsets[row + 1]};
    Filled filled = {places, first_parts[row], first_rings[row], first_coordinates[row]};
    Shape::read(reader, filled);
  }
  // One thread writes the ends of the last part and the last ring.
  if (first_row() != 0) return;
  if (places.parts != nullptr) places.parts[first_parts[rows]] = first_rings[rows];
  if (places.rings != nullptr) places.rings[first_rings[rows]] = first_coordinates[rows];
}
