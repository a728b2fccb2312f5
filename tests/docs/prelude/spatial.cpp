// A function of a program that has a session and rows as WKB.
#include <kiln/runtime.hpp>
#include "spatial/operations.hpp"
int block(kiln::Session& session, const std::vector<spatial::Wkb>& wkb_of_points, const std::vector<spatial::Wkb>& wkb_of_polygons) {
@block@
  return 0;
}
