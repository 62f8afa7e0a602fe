// Replaces the file that eRPC's CMake makes: names the transport, and the room in front of headers.
// With ERPC_MEMIF, that is eRPC's own transport over DPDK, on a device of memif.
#pragma once

#include <stdlib.h>

namespace erpc {

class ShmTransport;
class DpdkTransport;

#ifdef ERPC_MEMIF
#define CTransport DpdkTransport
static constexpr size_t kHeadroom = 40;

// The device and its arguments, as the option --vdev of DPDK names it; and the option that gives the
// calling thread its processor.
extern const char *memif_device, *memif_lcores;
#else
#define CTransport ShmTransport
static constexpr size_t kHeadroom = 0;
#endif
static constexpr size_t kIsRoCE = false;
static constexpr size_t kIsAzure = false;

}  // namespace erpc
