#include "base/version.h"

namespace starling {

// In a separate file, so that no other code knows the value at compile time.
extern const Version kThisVersion = {"starling-build", STARLING_WIRE_MAJOR, STARLING_WIRE_MINOR, STARLING_VERSION};

}  // namespace starling
