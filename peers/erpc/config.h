// In place of the file that eRPC's CMake makes: which transport, and what lies in front of headers.
#pragma once

#include <stdlib.h>

namespace erpc {

class ShmTransport;

#define CTransport ShmTransport
static constexpr size_t kHeadroom = 0;
static constexpr size_t kIsRoCE = false;
static constexpr size_t kIsAzure = false;

}  // namespace erpc
