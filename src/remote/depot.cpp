#include "remote/depot.hpp"

namespace kiln {

const char* to_string(Depot::Shelf shelf) { return shelf == Depot::Shelf::Action ? "ac" : "cas"; }

}  // namespace kiln
