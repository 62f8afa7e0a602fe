// Replaces the file that eRPC's CMake makes: names the transport, and the room in front of headers.
#pragma once

#include <stdlib.h>

namespace erpc {

class ShmTransport;

#define CTransport ShmTransport
static constexpr size_t kHeadroom = 0;
static constexpr size_t kIsRoCE = false;
static constexpr size_t kIsAzure = false;

}  // namespace erpc
