#include "functions.h"

namespace starling {

namespace {
constexpr Function kFunctions[] = {
#include "function_list.inc"
};
constexpr Function kShmemFunctions[] = {
#include "shmem_function_list.inc"
};
}  // namespace

std::span<const Function> functions() { return kFunctions; }
std::span<const Function> shmem_functions() { return kShmemFunctions; }

}  // namespace starling
