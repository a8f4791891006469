#include "base/version.h"

namespace starling {

// In a file of its own: nothing else may know it when it is compiled.
extern const Version kThisVersion = {"starling-build", STARLING_WIRE_MAJOR, STARLING_WIRE_MINOR, STARLING_VERSION};

}  // namespace starling
