#include "functions.h"

namespace starling {

namespace {
constexpr Function kFunctions[] = {
#include "function_list.inc"
};
}  // namespace

std::span<const Function> functions() { return kFunctions; }

}  // namespace starling
